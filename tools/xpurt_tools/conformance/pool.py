"""Worker processes; each gets one pair at a time."""

import contextlib
import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.record import ON_THE_CPU
from xpurt_tools.conformance.results import Failure, Result, Status, from_data
from xpurt_tools.conformance.settings import Settings

START_TIMEOUT_S = 180.0
CRASHES_PER_PAIR = 4  # of a sweep
LAST_WORDS = 1200  # of a worker's stderr, in characters


class WorkersFailed(Exception):
    """No worker has started: the device is at fault, not an op."""


class Ended(Exception):
    """A worker has ended before its answer; the text gives its exit status."""


class TookTooLong(Exception):
    """A worker has not answered in time."""


def run_pairs(pairs: Sequence[Pair], settings: Settings) -> Iterator[Result]:
    """The results, in the order in which they arrive.

    A pair whose worker crashes or exceeds the timeout has a result, too, and the next
    pair gets a new worker. Raises WorkersFailed if the first worker of a job does not
    start.
    """
    waiting: queue.SimpleQueue[Pair] = queue.SimpleQueue()
    for pair in pairs:
        waiting.put(pair)
    done: queue.SimpleQueue[Result | Exception | None] = queue.SimpleQueue()
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=_work, args=(waiting, done, stop, settings), daemon=True
        )
        for _ in range(min(settings.jobs, len(pairs)))
    ]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            result = done.get()
            if isinstance(result, Exception):
                raise result
            if result is None:
                running -= 1
            else:
                yield result
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=10)


def _work(
    waiting: "queue.SimpleQueue[Pair]",
    done: "queue.SimpleQueue[Result | Exception | None]",
    stop: threading.Event,
    settings: Settings,
) -> None:
    worker: Worker | None = None
    try:
        while not stop.is_set():
            try:
                pair = waiting.get_nowait()
            except queue.Empty:
                break
            crashes: list[Crash] = []
            while True:
                worker = worker or Worker(settings)
                result = worker.check(pair, stop, [crash.trial for crash in crashes])
                if worker.alive:
                    break
                crash = worker.crash
                worker.close()
                worker = None
                # The other calls of a sweep are run without the one that has ended it.
                if (
                    settings.sweep is None
                    or stop.is_set()
                    or len(crashes) == CRASHES_PER_PAIR
                    or not crash.of_a_trial
                ):
                    break
                crashes.append(crash)
            if settings.sweep and worker is None and crash.of_a_trial:
                # Too many: what has ended its worker is all that is known of the pair.
                result = Result(pair.name, pair.dtype, pair.category, "not on the CPU")
                crashes.append(crash)
            done.put(with_crashes(result, crashes) if crashes else result)
        done.put(None)
    except Exception as error:
        done.put(error)
    finally:
        if worker is not None:
            worker.close()


@dataclass(frozen=True, slots=True)
class Crash:
    """The end of a worker, or a hang. where: the last answer that names a trial."""

    where: str
    status: Status
    message: str

    @property
    def trial(self) -> str:
        return self.where.removesuffix(ON_THE_CPU)

    @property
    def on_cpu(self) -> bool:
        return self.where.endswith(ON_THE_CPU)

    @property
    def of_a_trial(self) -> bool:
        return ", sample " in self.where


def with_crashes(result: Result, crashes: Sequence[Crash]) -> Result:
    """The result of the trials that remained, with those that ended their worker. A crash
    of the CPU's own kernel is no failure of xpu."""
    for crash in crashes:
        if crash.on_cpu:
            kind = f"{crash.status} on the CPU"
            result.trials[kind] = result.trials.get(kind, 0) + 1
            continue
        variant, _, index = crash.trial.rpartition(", sample ")
        result.status = crash.status
        result.add_failure(variant)
        result.trials["failed"] = result.trials.get("failed", 0) + 1
        result.failures.insert(0, Failure(variant, int(index), "", crash.message))
    return result


class Worker:
    """A process, after its first answer. Raises WorkersFailed if there is no answer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed in close()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "xpurt_tools.conformance.worker"),
                json.dumps(asdict(settings), default=str),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment(settings),
        )
        self._rest = b""
        self.alive = True
        try:
            self._answer(time.monotonic() + START_TIMEOUT_S, threading.Event())
        except (Ended, TookTooLong) as error:
            said = self._last_words()
            self.close()
            raise WorkersFailed(
                f"no worker starts under the mapping {settings.mapping!r}: {error}\n"
                f"{said}"
            ) from None

    def check(
        self, pair: Pair, stop: threading.Event, skip: Sequence[str] = ()
    ) -> Result:
        """The result of `pair`, without the trials of `skip`. After a crash or a hang,
        `alive` is False, and `crash` is what happened."""
        self._stderr.seek(0)
        self._stderr.truncate()
        request = {
            "name": pair.name,
            "dtype": pair.dtype,
            "category": pair.category,
            "skip": list(skip),
            "timeout_s": self._settings.timeout_s,
        }
        started = time.monotonic()
        deadline = started + self._settings.timeout_s
        where = "the start"
        status: Status
        try:
            self._ask(request)
            while True:
                answer = self._answer(deadline, stop)
                if "result" in answer:
                    return from_data(answer["result"])
                where = answer["at"]
                if self._settings.sweep:  # it is a time for each call
                    deadline = time.monotonic() + self._settings.timeout_s
        except Ended as error:
            status, message = "crashed", str(error)
        except TookTooLong as error:
            status, message = "hung", str(error)
        self.alive = False
        self._process.kill()
        self._process.wait()
        message = f"{message}\n{self._last_words()}".strip()
        self.crash = Crash(where, status, message)
        return Result(
            pair.name,
            pair.dtype,
            pair.category,
            status,
            failed=1,
            failures=[Failure(where, -1, "", message)],
            seconds=round(time.monotonic() - started, 3),
        )

    def close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10 if self.alive else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Ended(_end_of(self._process)) from None

    def _answer(self, deadline: float, stop: threading.Event) -> dict[str, Any]:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or stop.is_set():
                raise TookTooLong(f"no answer after {self._settings.timeout_s:g} s")
            if not select.select([pipe], [], [], min(left, 0.5))[0]:
                continue
            read = os.read(pipe, 1 << 16)
            if not read:
                raise Ended(_end_of(self._process))
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        """The end of its output, without faulthandler's list of all libraries, and
        without the folders of the files, by whose length the innermost call would be
        cut off."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        lines_of_failure = [
            re.sub(r'(?<=File ")[^"]*/(?=[^/"]+/[^/"]+")', "", line)
            for line in lines
            if not line.startswith("Extension modules:")
        ]
        return "\n".join(lines_of_failure)[-LAST_WORDS:]


def _end_of(process: "subprocess.Popen[bytes]") -> str:
    try:
        code = process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return "closed its pipe"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def environment(settings: Settings) -> dict[str, str]:
    """A worker's environment: that of this process, with the settings of the run."""
    wanted = {
        "XPURT_MAPPING": settings.mapping,
        "XPURT_KERNEL_POLICY": settings.policy,
        "XPURT_VIRTUAL_GPU": settings.virtual_gpu,
        "XPURT_FALLBACK": "silent",
    }
    if settings.jobs > 1:
        wanted["OMP_NUM_THREADS"] = "1"
    if settings.compiled:
        # A worker compiles by itself: a crash of a compiler's process would be no result.
        wanted["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    return {**os.environ, **wanted}
