"""Runs PyTorch's own tests of the CPU with xpurt and without, and compares.

    python tests/bystander/compare.py FOLDER [FILE ...] [--sample N] [--json REPORT]

FOLDER is `test` of PyTorch's sources. FILE is a path in it, without .py; without any, the
list below. One test in N is run; without N, as many as the list says for the file.

The exit status is 1 if a test has another outcome with xpurt, or a warning is given with
xpurt alone. Processor time is reported: it differs by some percent between two runs.

Tests of another version fail where this PyTorch has other names or results. They count
as equal if they fail with and without xpurt. Tests run in one process after the other: a
crash or a hang ends a test.
"""

import argparse
import contextlib
import json
import os
import queue
import resource
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from pytorch_sources import load, outcome

TIMEOUT_S = 120
# One in so many tests, so that each file takes about a minute in each of the two runs.
FILES = {
    "test_torch": 6,
    "test_autograd": 6,
    "test_nn": 24,
    "test_dataloader": 6,
    "test_multiprocessing": 4,
    "test_optim": 16,
    "test_serialization": 6,
    "distributed/test_c10d_gloo": 24,
    "profiler/test_profiler": 8,
    "inductor/test_torchinductor": 160,
    "inductor/test_flex_attention": 40,
}
# Tests that ask whether an xpu is there, and expect otherwise of CPU tensors then.
KNOWN = {
    # With an accelerator, a backward after a fork is to fail. With xpurt it works, as
    # without: autograd has no threads before xpu is used.
    "test_multiprocessing.TestMultiprocessing.test_autograd_errors",
}
WITH, WITHOUT = "with xpurt", "without"


@dataclass
class Run:
    outcomes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    warnings: set[str] = field(default_factory=set)
    seconds: float = 0.0  # of processors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    differences = 0
    report = {}
    for file in asked.files or FILES:
        sample = asked.sample or FILES.get(file, 1)
        names = _list(asked.folder, file)[::sample]
        runs = {each: Run() for each in (WITHOUT, WITH)}
        for each, run in runs.items():
            _run(asked.folder, file, names, run, each == WITH)
        report[file] = _compare(file, runs)
        differences += len(report[file]["other"]) + len(report[file]["warnings"])
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=1))
    return int(differences > 0)


def _compare(file: str, runs: dict[str, Run]) -> dict[str, object]:
    without, beside = runs[WITHOUT], runs[WITH]
    other = {
        name: f"{status} without xpurt, {beside.outcomes.get(name)} with it"
        for name, status in without.outcomes.items()
        if beside.outcomes.get(name) != status and name not in KNOWN
    }
    more = sorted(beside.warnings - without.warnings)
    passed = list(without.outcomes.values()).count("passed")
    print(
        f"{file}: {len(without.outcomes)} tests, {passed} pass without xpurt, "
        f"{len(other)} differ, {len(more)} warnings more, processor time "
        f"{without.seconds:.0f} s without, {beside.seconds:.0f} s with",
        flush=True,
    )
    for name, text in other.items():
        print(f"  {name}: {text}")
        print("    " + beside.messages.get(name, "")[-800:].replace("\n", "\n    "))
    for text in more:
        print(f"  warning: {text}", flush=True)
    return {
        "tests": len(without.outcomes),
        "passed": passed,
        "other": other,
        "warnings": more,
        "seconds": {name: run.seconds for name, run in runs.items()},
    }


def _environment(folder: Path, beside: bool, caches: str) -> dict[str, str]:
    paths = [str(folder), str(Path(__file__).parents[1])]
    return {
        **os.environ,
        "XPURT_AUTOLOAD": "1" if beside else "0",
        "XPURT_VIRTUAL_GPU": "off",
        "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": caches,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def _list(folder: Path, file: str) -> list[str]:
    """The tests that there are without xpurt."""
    with tempfile.TemporaryDirectory() as caches:
        told = subprocess.run(
            [sys.executable, __file__, "--child", str(folder), file, "list"],
            env=_environment(folder, False, caches),
            capture_output=True,
            text=True,
        )
    if told.returncode != 0:
        print(f"{file}: can't be imported\n{told.stderr[-800:]}", flush=True)
        return []
    return list(json.loads(told.stdout.splitlines()[-1]))


def _run(folder: Path, file: str, names: list[str], run: Run, beside: bool) -> None:
    left = list(names)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as caches:
        env = _environment(folder, beside, caches)
        while left:
            for line in _lines(folder, file, left, env):
                name, status, message, more = json.loads(line)
                run.outcomes[name], run.messages[name] = status, message
                run.warnings |= set(more)
                left.remove(name)
            if left:
                run.outcomes[left.pop(0)] = "crashed or hung"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run.seconds = (after.ru_utime + after.ru_stime) - (
        before.ru_utime + before.ru_stime
    )


def _lines(
    folder: Path, file: str, names: list[str], env: dict[str, str]
) -> Iterator[str]:
    """A line for each test; ends early if the process ends, or nothing comes in time."""
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, __file__, "--child", str(folder), file, str(writing)],
        env=env,
        pass_fds=[writing],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    os.close(writing)
    assert child.stdin is not None
    child.stdin.write(json.dumps(names))
    child.stdin.close()
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        with os.fdopen(reading) as pipe:
            for line in pipe:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while (line := lines.get(timeout=TIMEOUT_S)) is not None:
            yield line
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, 9)
    child.wait()


def _tests(values: Iterable[object]) -> Iterator[unittest.TestCase]:
    """Of the classes alone: `load_tests` of a module asks for PyTorch's own runner."""
    for each in list(values):
        if isinstance(each, type) and issubclass(each, unittest.TestCase):
            yield from unittest.defaultTestLoader.loadTestsFromTestCase(each)


def _add_names() -> None:
    """Names that files call at their import, and this PyTorch lacks."""
    from torch.testing._internal import common_cuda, common_mkldnn, common_nn

    vars(common_cuda).setdefault("tf32_is_not_fp32", lambda: False)
    vars(common_mkldnn).setdefault("bf32_on_and_off", lambda *_: lambda test: test)
    # Descriptions of modules, from which test_nn makes tests; later it has them itself.
    for name in ("module_tests", "new_module_tests", "criterion_tests"):
        vars(common_nn).setdefault(name, [])


@contextlib.contextmanager
def _tests_find_no_xpu(file: str) -> Iterator[None]:
    """Within it PyTorch's tests choose as where no xpu is: at their import they skip tests
    of CPU tensors that they have for machines without one. Who else asks is answered
    truly, and so are the tests as they run."""
    import torch

    there = torch.xpu.is_available

    def answer() -> bool:
        asks = sys._getframe(1).f_globals["__name__"]
        of_tests = asks == Path(file).name or asks.startswith("torch.testing.")
        return not of_tests and there()

    torch.xpu.is_available = answer
    try:
        yield
    finally:
        torch.xpu.is_available = there


def child(folder: str, file: str, report: str) -> None:
    sys.path.insert(0, str(Path(folder, file).parent))
    sys.argv = [f"{file}.py"]
    with _tests_find_no_xpu(file):
        _add_names()
        module = load(Path(file).name)
    tests = {each.id(): each for each in _tests(vars(module).values())}
    if report == "list":
        print(json.dumps(sorted(tests)))
        return
    seen: list[str] = []
    with os.fdopen(int(report), "w", buffering=1) as lines:
        for name in json.load(sys.stdin):
            seen.clear()
            result = unittest.TestResult()
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = lambda text, kind, *_: seen.append(
                    f"{kind.__name__}: {str(text)[:120]}"
                )
                if name in tests:
                    tests[name].run(result)
            status, message = outcome(result) if name in tests else ("missing", "")
            print(json.dumps([name, status, message, sorted(set(seen))]), file=lines)
    os._exit(0)  # a test's thread or process may be left


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        sys.exit(main())
