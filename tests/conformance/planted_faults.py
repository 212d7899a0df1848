"""Faults at boundaries, planted into kernels: the sweep of shapes has to find each.

    python tests/conformance/planted_faults.py              # all: 5 minutes
    python tests/conformance/planted_faults.py 3 17         # these
    python tests/conformance/planted_faults.py --launches   # those in C++

A fault is a change of the text that the templates, the steps of rows and the compiler
make. Each runs in a process of its own, since a kernel is built once per process. In the
end a control runs the same cases without any fault, and all of them have to be right.

The faults of the C++ code are all in one build, where an environment variable chooses one
(mutant schemata: Untch, Offutt and Harrold, 1993). `--launches` changes the sources of
this checkout, builds it, and afterwards restores and builds it again.
"""

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from faults import FAULTS, IN_LAUNCHES, Fault

TIMEOUT_S = 400
CASES = 400  # of each call, at most
SAMPLE, WHOLE = "sample", "whole sweep"
FOUND, CRASHED = "found", "found: the process crashed"
NOT_FOUND, NO_SUCH_TEXT = "NOT FOUND", "NO KERNEL HAS THE TEXT"
NOT_BUILT, ERROR = "DOES NOT BUILD", "ERROR"
RIGHT, WRONG = "right", "WRONG WITHOUT A FAULT"

# A verdict, and what else is to be said.
Answer = tuple[str, str]

# How many cases a process has run: known, too, if it has crashed.
ran = multiprocessing.get_context("fork").Value("i", 0)

CSRC = Path(__file__).parents[2] / "xpurt" / "csrc" / "rows"
CHOSEN = "XPURT_PLANTED"  # the number of a fault of the C++ code


def plant(fault: Fault) -> list[str]:
    """Changes the kernels that this process builds. Returns the keys of those changed."""
    if fault.file:
        os.environ[CHOSEN] = str(FAULTS.index(fault))
        return [fault.file]
    from xpurt import _C
    from xpurt.kernels import fail, make_source

    changed: list[str] = []

    def planted(key: str, traits: Any) -> tuple[str, str]:
        entry, text = make_source(key, traits)
        if fault.old in text:
            changed.append(key)
        return entry, text.replace(fault.old, fault.new)

    _C.set_source_callbacks(planted, fail)
    return changed


def cases_of(kind: str) -> Iterator[tuple[str, Any, Any, int]]:
    """The kind's cases, and their numbers: first those of the sample that `make test`
    runs, then those of the whole sweep, one of each call in turn."""
    import test_shapes

    from xpurt_tools.conformance.sweeps.shapes_calls import CALLS
    from xpurt_tools.conformance.sweeps.shapes_cases import whole
    from xpurt_tools.conformance.sweeps.shapes_constants import constants
    from xpurt_tools.conformance.sweeps.shapes_covering import covering

    if calls := test_shapes.sampled(kind):
        for number, case in enumerate(covering(calls, constants())):
            yield SAMPLE, *case, number
    by_call = []
    for call in CALLS:
        if call.kind == kind:
            cases = list(whole(call, constants()))
            random.Random(0).shuffle(cases)
            by_call.append([(call, case) for case in cases[:CASES]])
    for number, turn in enumerate(zip_longest(*by_call)):
        yield from ((WHOLE, *each, number) for each in turn if each is not None)


def prepare() -> None:
    import torch

    import xpurt

    xpurt.set_kernel_policy("sycl")
    torch.set_num_threads(1)
    torch.zeros(1, device="xpu")


def message_of(call: Any, case: Any, number: int) -> str:
    """What is wrong with the result; "" if nothing is."""
    import torch

    from xpurt_tools.conformance.record import Record
    from xpurt_tools.conformance.sweeps import shapes

    record = Record(call.name, "", "", lambda where: None)
    shapes.run_case(call, case, getattr(torch, call.dtypes[0]), record, number)
    failures = record.result().failures
    return failures[0].message if failures else ""


def swept(fault: Fault) -> Answer:
    changed = plant(fault)
    for of, call, case, number in cases_of(fault.kind):
        ran.value += 1
        if message := message_of(call, case, number):
            if "KernelBuildError" in message:
                return NOT_BUILT, message
            said = f"{call.name}, {case}: {message.splitlines()[0][:90]}"
            return FOUND, f"by the {of}, case {ran.value}: {said}"
    return (NOT_FOUND if changed else NO_SUCH_TEXT), ""


def control(kind: str, most: int) -> Answer:
    """The first `most` cases of the kind, without a fault."""
    for _, call, case, number in islice(cases_of(kind), most):
        ran.value += 1
        if message := message_of(call, case, number):
            return WRONG, f"{call.name}, {case}: {message}"
    return RIGHT, ""


class Run:
    """Runs each fault in a process that this one forks, before it has used a device.
    Kernels stay in a folder of this run, so that wrong ones do not get into the user's."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="planted-")
        os.environ["XPURT_VIRTUAL_GPU"] = "strict"
        os.environ["XPURT_CACHE_DIR"] = self.folder.name
        # What each process would import.
        next(cases_of(FAULTS[0].kind))

    def process(self, mapping: str, run: Callable[..., Answer], *given: Any) -> Answer:
        """What `run` returns in a process of its own."""
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe(duplex=False)
        ran.value = 0

        def body() -> None:
            import xpurt

            xpurt.set_xpu_mapping(mapping)
            prepare()
            there.send(run(*given))
            os._exit(0)

        child = fork.Process(target=body)
        child.start()
        there.close()
        try:
            if not here.poll(TIMEOUT_S):
                return NOT_FOUND, "it took too long"
            answer: Answer = here.recv()
            return answer
        except EOFError:
            child.join()
            code = child.exitcode
            said = f"case {ran.value}, exit code {code}"
            return (CRASHED if (code or 0) < 0 else ERROR), said
        finally:
            child.kill()
            child.join()

    def faults(self, numbers: list[int]) -> tuple[int, dict[tuple[str, str], int]]:
        """How many are found, and how many cases of a kind and mapping that took."""
        found = by_sample = 0
        used: dict[tuple[str, str], int] = {}
        for number in numbers:
            fault = FAULTS[number]
            verdict, said = self.process(fault.mapping, swept, fault)
            of = fault.kind, fault.mapping
            used[of] = max(used.get(of, 1), ran.value)
            found += verdict in (FOUND, CRASHED)
            by_sample += f"the {SAMPLE}," in said
            print(
                f"{number:2} {fault.kind}, {fault.what}: {verdict} {said}", flush=True
            )
        print(f"{by_sample} by the {SAMPLE}")
        return found, used

    def controls(self, used: dict[tuple[str, str], int]) -> bool:
        """Runs the cases that were run with faults, without them."""
        right = True
        for (kind, mapping), most in used.items():
            verdict, said = self.process(mapping, control, kind, most)
            right &= verdict == RIGHT
            text = f"control: {kind}, {mapping}, {ran.value} cases: {verdict} {said}"
            print(text, flush=True)
        return right


@contextmanager
def built() -> Iterator[None]:
    """While it lasts, the extension has the faults of the C++ code."""
    before = {CSRC / each.file: (CSRC / each.file).read_text() for each in IN_LAUNCHES}
    after = dict(before)
    for number, fault in enumerate(FAULTS):
        if fault.file:
            chosen = f'std::getenv("{CHOSEN}")'
            is_chosen = f"({chosen} != nullptr && std::atoi({chosen}) == {number})"
            text = after[CSRC / fault.file]
            assert text.count(fault.old) == 1, fault
            either = f"({is_chosen} ? ({fault.new}) : ({fault.old}))"
            after[CSRC / fault.file] = text.replace(fault.old, either)
    try:
        _build({path: f"#include <cstdlib>\n{text}" for path, text in after.items()})
        yield
    finally:
        _build(before)


def _build(sources: Mapping[Path, str]) -> None:
    for path, text in sources.items():
        path.write_text(text)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(command, cwd=CSRC.parents[2], check=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--launches", action="store_true")
    given = parser.parse_args()
    numbers = given.numbers or [
        number
        for number, fault in enumerate(FAULTS)
        if bool(fault.file) == given.launches
    ]
    with built() if given.launches else nullcontext():
        run = Run()
        found, used = run.faults(numbers)
        os.environ.pop(CHOSEN, None)
        right = run.controls(used)
    said = "right" if right else "not right"
    print(f"{found} of {len(numbers)} found; the control is {said}")
    return 0 if found == len(numbers) and right else 1


if __name__ == "__main__":
    sys.exit(main())
