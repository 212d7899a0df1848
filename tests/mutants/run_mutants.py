"""Changes the sources, one small change at a time, and runs tests: `make mutants`.

    python tests/mutants/run_mutants.py [--count 200] [--seed 0] [--only TEXT]
        [--again TEXT] [--record [TEST ...]] [--minutes N]

Half of the mutants are in csrc, half in OpenCL C: in the templates and in the texts of
custom kernels. See rooms.py, sites.py and drawn.py. They are made in a folder of
build/mutants, whose extension is compiled once, with all changes of csrc behind a switch.

First the tests run without a change, and it is recorded which of them reach which change
and launch which kernel (--record does this anew, for the tests that are given). Then
each mutant runs those that reach it, a few cheap ones first, up to MOST_SECONDS of their
recorded time. It is found if one of them fails, if the process crashes, or if it takes
far longer. A mutant that no test reaches is not found.

What is known is kept in build/mutants, so a run can be continued. --again forgets the
mutants whose name or outcome contains TEXT. Ends with 1 if fewer than 95 of 100 were found.
`equivalent.txt` lists changes that change no result, with reasons; they don't count.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from drawn import Mutant, drawn, of_csrc
from own_process import run_forked
from rooms import ROOM
from switched_tree import ROOT, TREE, Tree, environment

FOUND = TREE / "found.json"
RECORD = TREE / "record.jsonl"
KEYS = TREE / "keys.txt"
REACHED = TREE / "reached"
UNCOMPILED = TREE / "uncompiled.txt"
FEW, FEW_SECONDS = 25, 10.0
MOST_SECONDS = 60.0
WANTED = 0.95

# What tests import takes longer than most tests.
IMPORTED = (
    "pytest",
    "hypothesis",
    "torch._inductor.compile_fx",
    "torch.testing._internal.common_methods_invocations",
)
LIMIT = "r.setrlimit(r.RLIMIT_CPU, ({0}, {0} + 5))"
IDLE_SECONDS = 120.0
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
SKIPPED = re.compile(r"\d+ (?:skipped|deselected)")
NOT_BUILT = ("KernelBuildError", "refuses the kernel", "SyntaxError")


@dataclass(frozen=True, slots=True)
class Recorded:
    test: str
    seconds: float
    numbers: frozenset[int]
    kernels: frozenset[str]


class Record:
    """Which test reaches what."""

    def __init__(self) -> None:
        lines = [json.loads(line) for line in RECORD.read_text().splitlines()]
        self.tests = [
            Recorded(
                each["test"],
                each["seconds"],
                frozenset(each["numbers"]),
                frozenset(each["kernels"]),
            )
            for each in {each["test"]: each for each in lines}.values()
        ]
        kernels = {key for each in self.tests for key in each.kernels}
        # The sources of the compiler's kernels are not known here.
        self.compiled = {key for key in kernels if key.startswith("compiled;")}
        self.keys = sorted(kernels - self.compiled)
        self.sources = self._hashes()

    def _hashes(self) -> list[str]:
        KEYS.write_text("\n".join(self.keys))
        code = f"import sources_of_keys; sources_of_keys.tell({str(KEYS)!r})"
        return run_forked(code, None, environment(), IMPORTED).stdout.split()

    def of_csrc(self, number: int) -> list[Recorded]:
        return [each for each in self.tests if number in each.numbers]

    def of_text(self, path: str) -> list[Recorded]:
        """Those that launch a kernel whose source is another one now."""
        now = self._hashes()
        triples = zip(self.keys, self.sources, now, strict=False)
        changed = {key for key, old, new in triples if old != new}
        if len(now) != len(self.keys):  # not even the source can be made
            changed = set(self.keys)
        if "/compiled/" in path:
            changed |= self.compiled
        return [each for each in self.tests if each.kernels & changed]


def record(tests: Iterable[str]) -> None:
    for each in tests:
        for old in TREE.glob("reached*"):
            old.unlink()
        variables = {"MUTANTS_REACHED": str(REACHED), "MUTANTS_RECORD": str(RECORD)}
        _, said = run([str(ROOT / each)], None, variables, "-p", "recording")
        print(f"{each}: {said.strip().splitlines()[-1]}", flush=True)


def run(
    tests: Sequence[str],
    seconds: int | None,
    variables: dict[str, str],
    *options: str,
) -> tuple[int | None, str]:
    """The exit status of pytest, None if it takes longer, and its output.

    seconds: of processor time, as the machine may be busy.
    """
    with tempfile.NamedTemporaryFile("w+", suffix=".txt") as listed:
        listed.write("\n".join(tests))
        listed.flush()
        limit = (
            ""
            if seconds is None
            else f"import resource as r; {LIMIT.format(seconds)}; "
        )
        arguments = ["-q", "-p", "no:cacheprovider", *options, f"@{listed.name}"]
        call = f"sys.exit(pytest.main({arguments}))"
        code = f"import sys, pytest; {limit}{call}"
        wall = None if seconds is None else IDLE_SECONDS + 10.0 * seconds
        try:
            done = run_forked(code, wall, environment(**variables), IMPORTED)
        except subprocess.TimeoutExpired:
            return None, ""
    return done.returncode, done.stdout + done.stderr


def in_order(tests: Iterable[Recorded]) -> list[Recorded]:
    """One of each test function, the cheapest first, then another of each."""
    functions: dict[str, list[Recorded]] = {}
    for each in sorted(tests, key=lambda each: each.seconds):
        functions.setdefault(each.test.partition("[")[0], []).append(each)
    turns = max(map(len, functions.values()), default=0)
    return [
        several[turn]
        for turn in range(turns)
        for several in functions.values()
        if len(several) > turn
    ]


def until(tests: Iterable[Recorded], seconds: float, count: int) -> list[Recorded]:
    taken: list[Recorded] = []
    for each in tests:
        seconds -= each.seconds
        if seconds < 0 or len(taken) == count:
            break
        taken.append(each)
    return taken


def outcome(tests: list[Recorded], number: int | None) -> str:
    """How the tests find a mutant: the first one that fails, for example."""
    if not tests:
        return "NOT REACHED"
    ordered = in_order(tests)
    few = until(ordered, FEW_SECONDS, FEW) or ordered[:1]
    rest = until(ordered[len(few) :], MOST_SECONDS, len(ordered))
    variables = {} if number is None else {"MUTANT_NUMBER": str(number)}
    for part in filter(None, (few, rest)):
        limit = 20 + int(2 * sum(each.seconds for each in part))
        tests_of_part = [f"{ROOT}/{each.test}" for each in part]
        # Those that were recorded, whatever the default selection is now.
        all_of_them = ("-m", "", "-x", "--tb=line")
        status, text = run(tests_of_part, limit, variables, *all_of_them)
        if status is None or status == -signal.SIGXCPU:
            return "found: takes too long"
        if status < 0 or status >= 128:
            return f"found: exit {status}"
        # A change of csrc that makes a kernel that does not build is found by that.
        if status != 0 and number is None and any(each in text for each in NOT_BUILT):
            return "does not build"
        if status != 0 and (failed := FAILED.search(text)):
            return f"found: {failed[1]}"
        if status != 0 or SKIPPED.search(text):  # all of them passed before
            sys.exit(text)
    ran = len(few) + len(rest)
    return f"NOT FOUND by {ran} of {len(tests)} tests"


def equivalent() -> set[str]:
    lines = Path(__file__).with_name("equivalent.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith(("#", " "))}


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs tests on changed sources.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--again", help="forget those whose name or outcome has this")
    parser.add_argument("--record", nargs="*", metavar="TEST", help="record anew")
    parser.add_argument(
        "--control", action="store_true", help="run the tests that found something"
    )
    parser.add_argument("--minutes", type=float, default=1e9, help="end after these")
    given = parser.parse_args()
    tree, in_csrc = built()
    # Those of the process that others are forked from.
    os.environ.update(environment())
    os.chdir(TREE)
    mutants = drawn(in_csrc, given.count, given.seed)
    if given.record or not RECORD.exists():
        record(given.record or ROOM.tests)
    known = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    if given.again is not None:
        text = given.again
        known = {n: how for n, how in known.items() if text not in f"{n} {how}"}
    same = equivalent()
    wanted = [m for m in mutants if m.name not in same and given.only in m.name]
    unknown = [each for each in wanted if each.name not in known]
    recorded = Record() if unknown else None
    until_when = time.monotonic() + 60 * given.minutes
    for mutant in unknown:
        if recorded is None or time.monotonic() > until_when:
            break
        print(mutant.name, flush=True)
        known[mutant.name] = tested(tree, recorded, mutant)
        FOUND.write_text(json.dumps(known, indent=1))
        print(f"    {known[mutant.name]}", flush=True)
    if given.control:
        controlled(known)
        FOUND.write_text(json.dumps(known, indent=1))
    return summary([known.get(each.name) for each in wanted])


def built() -> tuple[Tree, list[Mutant]]:
    """The tree, and the mutants of csrc that compile."""
    names = set(UNCOMPILED.read_text().split("\n")) if UNCOMPILED.exists() else set()
    mutants = [each for each in of_csrc() if each.name not in names]
    tree = Tree({each.number: (each.path, each.site) for each in mutants})
    dropped = tree.build()
    names |= {each.name for each in mutants if each.number in dropped}
    UNCOMPILED.write_text("\n".join(sorted(names)))
    return tree, [each for each in mutants if each.number not in dropped]


def tested(tree: Tree, recorded: Record, mutant: Mutant) -> str:
    if mutant.number >= 0:
        return outcome(recorded.of_csrc(mutant.number), mutant.number)
    tree.change(mutant.path, mutant.site)
    try:
        return outcome(recorded.of_text(mutant.path), None)
    finally:
        tree.restore(mutant.path)


def controlled(known: dict[str, str]) -> None:
    """Forgets what was found by tests that fail without a change, too."""
    tests = {how.removeprefix("found: ") for how in known.values() if "::" in how}
    _, text = run([str(TREE / test) for test in sorted(tests)], None, {}, "--tb=line")
    for test in FAILED.findall(text):
        print("fails without a change, too:", test)
        for name in [name for name, how in known.items() if test in how]:
            del known[name]


def summary(outcomes: list[str | None]) -> int:
    ran = [each for each in outcomes if each not in (None, "does not build")]
    found = [each for each in ran if each and each.startswith("found")]
    print(f"{len(found)} of {len(ran)} mutants were found")
    return 0 if len(found) >= WANTED * len(ran) else 1


if __name__ == "__main__":
    sys.exit(main())
