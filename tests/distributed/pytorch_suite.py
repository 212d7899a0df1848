"""Runs PyTorch's own tests of torch.distributed on xpu, and compares with the CPU.

    python tests/distributed/pytorch_suite.py FOLDER [FILE...] [--ranks N] [--sample N]

FOLDER is `test/distributed` of PyTorch's sources, which wheels do not have; FILE is a
file or a folder in it. Most of these tests are written for CUDA and NCCL, so their text
is changed as it is imported: xpu and xccl, or CPU tensors and gloo. A test that passes on
xpu is not run on the CPU.

Each test runs in a process that is forked from one with PyTorch and the tests imported,
and its ranks are forked from there: to import them takes longer than most tests. None
has used a device before.
"""

import argparse
import contextlib
import ctypes
import importlib
import importlib.machinery
import json
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from pytorch_sources import Outcome, load, outcome

SELF = str(Path(__file__).resolve())
TIMEOUT_S = 100
Outcomes = dict[str, Outcome]

# The backend of a device, and what the tests write for CUDA.
BACKENDS = {"cpu": "gloo", "xpu": "xccl"}
FOR_CUDA = (
    (r"\btorch\.cuda\b(?!\.nccl|\.amp)", "torch.{device}"),
    (r"""(["'])cuda\b""", r"\1{device}"),
    (r"\bcuda:", "{device}:"),
    (r"\.(is_)?cuda\b(?=\(|\)|,|$)", r".\1{device}"),
    (r"""(["':])nccl\b""", r"\1{backend}"),
    (r"\b(requires|is)_nccl(_available)?\b", r"\1_{backend}\2"),
    (r"\bBackend\.NCCL\b", "Backend.{name}"),
    (r"\bTEST_CUDA\b", "TEST_{upper}"),
    (r"(?<!import )\bHAS_(GPU|CUDA)\b", "True"),
    (r"\bProfilerActivity\.CUDA\b", "ProfilerActivity.{upper}"),
)


def compare(folder: Path, file: str, ranks: int, sample: int) -> tuple[Any, Any]:
    """The outcomes on xpu, and those on the CPU of the tests that fail on xpu."""
    on_xpu = dict(outcomes(folder, file, "xpu", ranks, sample=sample))
    doubtful = [test for test, (status, _) in on_xpu.items() if status != "passed"]
    if not doubtful:
        return on_xpu, {}
    return on_xpu, dict(outcomes(folder, file, "cpu", ranks, names=doubtful))


def outcomes(
    folder: Path,
    file: str,
    device: str,
    ranks: int,
    *,
    sample: int = 1,
    names: list[str] | None = None,
) -> Iterator[tuple[str, Outcome]]:
    """The outcome of each test of a file: of one in `sample`, or of those in `names`."""
    asked = [str(folder), file, "--ranks", str(ranks), "--sample", str(sample)]
    process = subprocess.Popen(
        [sys.executable, SELF, *asked, "--child", device],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(device, ranks),
        cwd=tempfile.gettempdir(),  # the tests leave files there
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(names))
    process.stdin.close()
    for line in process.stdout:
        name, status, message = json.loads(line)
        print(
            f"{device} {status:8} {name} {reason(message)}", file=sys.stderr, flush=True
        )
        yield name, (status, message)
    process.wait()


def reason(message: str) -> str:
    """The line of a message that tells most: the last that names an error."""
    lines = message.strip().splitlines() or [""]
    errors = [
        line for line in lines if re.match(r"\S*(Error|Exception|Failed)\b", line)
    ]
    return (errors or lines)[-1][:300]


def environment(device: str, ranks: int) -> dict[str, str]:
    found = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": str(ranks),
    }
    if device == "cpu":
        found["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    return found


def child(folder: Path, file: str, device: str, ranks: int, sample: int) -> None:
    """Runs the tests of a file, and prints a line for each."""
    answers = os.fdopen(os.dup(1), "w")
    names = json.loads(sys.stdin.read())
    os.dup2(2, 1)

    def answer(name: str, found: Outcome) -> None:
        answers.write(json.dumps([name, *found]) + "\n")
        answers.flush()

    try:
        tests = list(tests_of(folder, file, device, ranks))
    except Exception as error:  # an API that is gone
        answer(file, ("failed", f"{type(error).__name__}: {error}"))
        os._exit(0)
    for test in tests[::sample] if names is None else tests:
        name = any_device(test.id())
        if names is None or name in names:
            answer(name, run_apart(test))
    os._exit(0)


def any_device(name: str) -> str:
    """A test's name, the same for all devices."""
    return re.sub(r"(?<![a-z])(cpu|xpu)(?![a-z])|(CPU|XPU)(?=\.|$)", "DEVICE", name)


def run_apart(test: unittest.TestCase) -> Outcome:
    """Runs a test in a process of its own, whose children end with it."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        os.setsid()
        end_with_parent()
        result = unittest.TestResult()
        with contextlib.suppress(SystemExit):
            unittest.TestSuite([test]).run(result)
        with os.fdopen(theirs, "w") as pipe:
            json.dump(outcome(result) if result.testsRun else skipped(result), pipe)
        os._exit(0)
    os.close(theirs)
    text, end = b"", time.monotonic() + TIMEOUT_S
    status = "crashed"
    while True:
        if not select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
            status = "hung"
            break
        if not (part := os.read(ours, 1 << 16)):
            break
        text += part
        with contextlib.suppress(json.JSONDecodeError):
            json.loads(text)
            break
    os.close(ours)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    with contextlib.suppress(json.JSONDecodeError):
        found: list[str] = json.loads(text)
        return found[0], found[1]
    return status, ""


def end_with_parent() -> None:
    """No test goes on when the program is ended from outside."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def skipped(result: unittest.TestResult) -> Outcome:
    """Of a test that did not begin: its class failed, or is skipped."""
    if result.errors:
        return "failed", result.errors[0][1][-1500:]
    return "skipped", result.skipped[0][1] if result.skipped else "its class"


def tests_of(
    folder: Path, file: str, device: str, ranks: int
) -> Iterator[unittest.TestCase]:
    path = folder / file
    for each in (folder.parent, folder, path.parent):
        sys.path.insert(0, str(each))
    sys.path_hooks.insert(0, translated(folder, device))
    sys.path_importer_cache.clear()
    prepare(device, ranks)
    module = load(path.stem)
    # Not by loadTestsFromModule: PyTorch's `load_tests` refuses a program of its own.
    for cases in vars(module).values():
        if isinstance(cases, type) and issubclass(cases, unittest.TestCase):
            for name in unittest.TestLoader().getTestCaseNames(cases):
                yield cases(name)


def translated(folder: Path, device: str) -> Callable[[str], Any]:
    """A path hook for modules in `folder`, whose text it changes for the device."""
    backend = BACKENDS[device]
    words = {"device": device, "upper": device.upper()}
    words |= {"backend": backend, "name": backend.upper()}
    changes = [(re.compile(old, re.M), new.format(**words)) for old, new in FOR_CUDA]

    class Loader(importlib.machinery.SourceFileLoader):
        def get_code(self, fullname: str) -> Any:
            text = self.get_data(self.path).decode()
            for old, new in changes:
                text = old.sub(new, text)
            return compile(text, self.path, "exec", dont_inherit=True)

    find = importlib.machinery.FileFinder.path_hook((Loader, [".py"]))

    def hook(path: str) -> Any:
        if not Path(path).resolve().is_relative_to(folder):
            raise ImportError(f"{path} holds no tests of torch.distributed")
        return find(path)

    return hook


class RankProcess(multiprocessing.context.ForkProcess):
    """A rank: the process "process N" of a test."""

    def run(self) -> None:
        number = re.search(r"\d+$", self.name)
        rank = int(number[0]) if number else 0
        os.environ["LOCAL_RANK"] = str(rank)
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {usable[rank % len(usable)]})
        end_with_parent()
        super().run()


class RankContext(multiprocessing.context.ForkContext):
    Process = RankProcess


def prepare(device: str, ranks: int) -> None:
    """Makes PyTorch's own bases of tests take the device, and fork their ranks."""
    import torch

    here = torch.xpu if device == "xpu" else torch.cpu
    # Asked by the process that forks. A driver's threads do not survive a fork.
    stand_in(here, "device_count", lambda: ranks)
    stand_in(here, "current_device", lambda: 0, once_forked=device == "xpu")
    if device == "xpu":
        stand_in(here, "is_available", lambda: True)
    else:
        stand_in(here, "manual_seed", torch.manual_seed)
        stand_in(torch.accelerator, "device_count", lambda: ranks)
    torch.multiprocessing.get_context = lambda method=None: RankContext()
    from torch.testing._internal import common_cuda, common_device_type, common_fsdp
    from torch.testing._internal import common_distributed as bases

    common_cuda.TEST_MULTIGPU = True
    # Ranks that are threads: left out for xpu by PyTorch, and possible here.
    common_fsdp.FSDPTestMultiThread.__unittest_skip__ = False
    make = common_device_type.instantiate_device_type_tests
    common_device_type.instantiate_device_type_tests = lambda *args, **options: make(
        *args, **{**options, "allow_xpu": True}
    )
    if device == "cpu":
        for name in ("skip_if_lt_x_gpu", "nccl_skip_if_lt_x_gpu"):
            setattr(bases, name, lambda *args, **options: lambda test: test)
        common_fsdp.DEVICE_COUNT = ranks
    bases.at_least_x_gpu = lambda count: count <= ranks
    bases.requires_xccl = bases.requires_gloo
    bases.DEFAULT_WORLD_SIZE = ranks
    bases.MultiProcContinousTest = bases.MultiProcContinuousTest  # renamed since 2.6


def stand_in(
    module: Any, name: str, answer: Callable[..., Any], *, once_forked: bool = False
) -> None:
    """Replaces a function; with once_forked only until there is a rank."""
    original = getattr(module, name, None)
    parent = os.getpid()

    def answered(*args: Any, **options: Any) -> Any:
        process = multiprocessing.current_process()
        if once_forked and isinstance(process, RankProcess) and os.getpid() != parent:
            assert original is not None
            return original(*args, **options)
        return answer(*args, **options)

    setattr(module, name, answered)


def files_of(folder: Path, asked: list[str]) -> list[str]:
    found: list[Path] = []
    for each in asked or ["."]:
        path = folder / each
        found += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    return [str(each.relative_to(folder)) for each in found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the outcomes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.child:
        (file,) = options.files
        child(folder, file, options.child, options.ranks, options.sample)
        return
    all_found = {}
    for file in files_of(folder, options.files):
        on_xpu, on_cpu = compare(folder, file, options.ranks, options.sample)
        all_found[file] = {"xpu": on_xpu, "cpu": on_cpu}
        good = sum(status == "passed" for status, _ in on_xpu.values())
        wrong = [test for test, (status, _) in on_cpu.items() if status == "passed"]
        for name in wrong:
            status, message = on_xpu[name]
            print(f"{status}: {name}: {reason(message)}")
        print(
            f"{file}: {len(on_xpu)} tests, {good} pass on xpu, {len(wrong)} on the CPU "
            f"alone, {len(on_xpu) - good - len(wrong)} on neither",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(all_found, indent=1))


if __name__ == "__main__":
    main()
