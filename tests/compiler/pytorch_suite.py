"""Runs PyTorch's own tests of Inductor for xpu and for the CPU, and compares the two.

    python tests/compiler/pytorch_suite.py FOLDER [--suite static|dynamic|ops]
        [--sample N] [--first-sample] [--json FILE]

FOLDER is `test` of PyTorch's sources, which wheels do not have. Sources of another
version do. pytorch_cases.py describes the suites.

Tests run in one process after the other: a crash or a hang ends a test.
"""

import argparse
import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from pytorch_sources import Outcome, outcome

TIMEOUT_S = 300
SELF = str(Path(__file__).resolve())
SUITES = ("static", "dynamic", "ops")
Outcomes = dict[str, Outcome]  # by test


def compare(
    tests: list[str], *, sample: int = 1, known: Path | None = None
) -> tuple[Outcomes, Outcomes]:
    """The outcomes on xpu, and those on the CPU of the tests that do not pass on xpu.

    A test that passes on xpu is not run on the CPU, where a test takes seconds of a C++
    compiler.

    tests: the arguments of a process that has the tests. sample: one in this many is
    run. known: a file with outcomes on the CPU, which are taken from it, and added to it.
    """
    asked = ["--child", *tests]
    names = json.loads(
        subprocess.run(
            [sys.executable, SELF, *asked, "list"],
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()[-1]
    )  # fmt: skip
    # Ops alone by AOTInductor are no programs of torch.compile, and take minutes each.
    names = [name for name in names if "aoti_eager" not in name]
    on_xpu = dict(outcomes(asked, "xpu", names[::sample]))
    doubtful = [test for test, (status, _) in on_xpu.items() if status != "passed"]
    on_cpu: Outcomes = {}
    if known is not None and known.exists():
        on_cpu = {
            test: tuple(found) for test, found in json.loads(known.read_text()).items()
        }
    left = [test for test in doubtful if test not in on_cpu]
    on_cpu |= dict(outcomes(asked, "cpu", left))
    if known is not None:
        known.write_text(json.dumps(on_cpu, indent=1))
    return on_xpu, {test: on_cpu[test] for test in doubtful}


def outcomes(
    asked: list[str], device: str, names: list[str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    left = list(names)
    while left:
        process = subprocess.Popen(
            [sys.executable, SELF, *asked, device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", **caches(asked)},
            cwd=tempfile.gettempdir(),  # the tests leave files there
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(left))
            process.stdin.close()
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        while left:
            found = ("crashed", "")
            try:
                line = lines.get(timeout=TIMEOUT_S)
            except queue.Empty:
                line, found = "", ("hung", "")
            if line:
                found = tuple(json.loads(line))  # type: ignore[assignment]
            name = left.pop(0)
            said = found[1].strip().rpartition("\n")[2] if found[0] == "failed" else ""
            print(f"{device} {found[0]:8} {name} {said}", file=sys.stderr, flush=True)
            yield name, found
            if not line:
                break
        process.kill()
        process.wait()
        reader.join()


def _read(pipe: Any, lines: "queue.SimpleQueue[str]") -> None:
    for line in pipe:
        lines.put(line)
    lines.put("")


def caches(asked: list[str]) -> dict[str, str]:
    """Variables that tell where compiled code is kept. A test of an op would compile
    PyTorch's headers anew, which takes longer than the test; other tests need a folder
    of their own."""
    return {"INDUCTOR_TEST_DISABLE_FRESH_CACHE": "1"} if "ops" in asked else {}


def child(folder: Path, suite: str, device: str, *, first_sample: bool = False) -> None:
    """Prints the names of all tests, or runs those on stdin, with a line for each."""
    from pytorch_cases import methods, test_case

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if device == "list":
        # PyTorch lists an op's dtypes by device.
        both = [
            methods(test_case(folder, suite, each, first_sample=first_sample), each)
            for each in ("xpu", "cpu")
        ]
        print(json.dumps([name for name in both[0] if name in both[1]]), file=answers)
        answers.flush()
        return
    cases = test_case(folder, suite, device, first_sample=first_sample)
    found = methods(cases, device)
    cases.setUpClass()
    for name in json.loads(sys.stdin.read()):
        result = unittest.TestResult()
        cases(found[name]).run(result)
        answers.write(json.dumps(outcome(result)) + "\n")
        answers.flush()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--suite", choices=SUITES, default="static")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--first-sample", action="store_true", help="of each op, alone")
    parser.add_argument("--known", type=Path, help="outcomes on the CPU")
    parser.add_argument("--json", type=Path, help="write the outcomes on xpu")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("device", nargs="?", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder, suite = options.folder.resolve(), options.suite
    if options.child:
        child(folder, suite, options.device, first_sample=options.first_sample)
        return
    tests = ["--suite", suite, str(folder)]
    if options.first_sample:
        tests.insert(0, "--first-sample")
    on_xpu, on_cpu = compare(tests, sample=options.sample, known=options.known)
    if options.json:
        options.json.write_text(json.dumps(on_xpu, indent=1))
    good = sum(status == "passed" for status, _ in on_xpu.values())
    wrong = [test for test, (status, _) in on_cpu.items() if status == "passed"]
    for name in wrong:
        status, message = on_xpu[name]
        print(f"{status}: {name}")
        print("    " + message.strip()[-300:].replace("\n", "\n    "))
    print(
        f"{len(on_xpu)} tests: {good} pass on xpu, {len(wrong)} on the CPU alone, "
        f"{len(on_xpu) - good - len(wrong)} on neither"
    )


if __name__ == "__main__":
    main()
