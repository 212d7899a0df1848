"""Changes the sources, one small change at a time, and runs tests: `make mutants`.

    python tests/mutants/run_mutants.py [--count 200] [--seed 0] [--only TEXT]
        [--again TEXT] [--record [TEST ...]] [--minutes N]

The mutants are in csrc and in OpenCL C: in the templates and in the texts of custom
kernels. MUTANTS_ROOM=all has those of Python, too. See rooms.py, sites.py,
python_sites.py and drawn.py. They are made in a folder of build/mutants, whose extension
is compiled once, with the changes of csrc behind a switch; so are those of Python.

First the tests run without a change, and it is recorded which of them reach which change
and launch which kernel (--record does this anew, for the tests that are given). Then
each mutant runs those that reach it, a few cheap ones first, up to MOST_SECONDS of their
recorded time. It is found if one of them fails, if the process crashes, or if it takes
far longer. A mutant that no test reaches is not found. The tests of `make test` run
first; what they do not find, those of `make test-rest` may find, which is counted apart:
the former are to find 95 of 100 of what both find.

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

from drawn import Mutant, drawn, of_switches
from own_process import run_forked
from rooms import ROOM
from switched_tree import ROOT, TREE, Tree, environment

FOUND = TREE / "found.json"
RECORD = TREE / "record.jsonl"
KEYS = TREE / "keys.txt"
REACHED = TREE / "reached"
DRAWN = TREE / "drawn.txt"
RECORDED = TREE / "recorded.txt"  # the tests that the record has
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
BY_THE_REST = "found by the rest"
NOT_IMPORTED = "ImportError while loading conftest"
# What `make test` and `make test-rest` run.
BOTH = ("-m", "not slow and not programs")
NOT_BUILT = ("KernelBuildError", "refuses the kernel", "SyntaxError")


@dataclass(frozen=True, slots=True)
class Recorded:
    test: str
    seconds: float
    numbers: frozenset[int]
    kernels: frozenset[str]
    is_rest: bool


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
                each.get("is_rest", False),
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

    def of_switch(self, number: int) -> list[Recorded]:
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
        options = ("-p", "recording", *BOTH)
        _, said = run([str(ROOT / each)], None, variables, *options)
        print(f"{each}: {said.strip().splitlines()[-1]}", flush=True)
        with RECORDED.open("a") as recorded:
            print(each, file=recorded)


def unrecorded() -> list[str]:
    """What tests the record does not have, as it was not made, or not to its end."""
    done = RECORDED.read_text().splitlines() if RECORDED.exists() else []
    files = (sorted(ROOT.glob(each)) for each in ROOM.tests)
    names = (str(file.relative_to(ROOT)) for several in files for file in several)
    return [each for each in names if each not in done]


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
    """How the tests of `make test` find a mutant, or else the rest."""
    if not tests:
        return "NOT REACHED"
    quick = outcome_of([each for each in tests if not each.is_rest], number)
    if not quick.startswith("NOT"):
        return quick
    rest = outcome_of([each for each in tests if each.is_rest], number)
    found = rest.startswith("found: ")
    return rest.replace("found", BY_THE_REST, 1) if found else f"{quick}; {rest}"


def outcome_of(tests: list[Recorded], number: int | None) -> str:
    """How the tests find a mutant: the first one that fails, for example."""
    ordered = in_order(tests)
    few = until(ordered, FEW_SECONDS, FEW) or ordered[:1]
    others = until(ordered[len(few) :], MOST_SECONDS, len(ordered))
    variables = {} if number is None else {"MUTANT_NUMBER": str(number)}
    for part in filter(None, (few, others)):
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
        if status != 0 and NOT_IMPORTED in text:
            return "found: at import"
        if status != 0 and (failed := FAILED.search(text)):
            return f"found: {failed[1]}"
        if status != 0 or SKIPPED.search(text):  # all of them passed before
            sys.exit(text)
    ran = len(few) + len(others)
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
    tree, mutants = built(given.count, given.seed)
    # Those of the process that others are forked from.
    os.environ.update(environment())
    os.chdir(TREE)
    if given.record == []:
        RECORDED.unlink(missing_ok=True)
    record(given.record or unrecorded())
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


def built(count: int, seed: int) -> tuple[Tree, list[Mutant]]:
    """The tree, and those of the drawn mutants that compile."""
    names = set(UNCOMPILED.read_text().split("\n")) if UNCOMPILED.exists() else set()
    switches = of_switches()
    if ROOM.is_sampled:
        switches = [each for each in drawn(switches, count, seed) if each.number >= 0]
        check_draw(switches)
    switches = [each for each in switches if each.name not in names]
    tree = Tree({each.number: (each.path, each.site) for each in switches})
    dropped = tree.build()
    names |= {each.name for each in switches if each.number in dropped}
    UNCOMPILED.write_text("\n".join(sorted(names)))
    compiled = [each for each in switches if each.number not in dropped]
    return tree, drawn(compiled, count, seed)


def check_draw(switches: Iterable[Mutant]) -> None:
    """Forgets the record of another draw."""
    text = "\n".join(each.name for each in switches)
    if not DRAWN.exists() or DRAWN.read_text() != text:
        for file in (RECORD, RECORDED):
            file.unlink(missing_ok=True)
    DRAWN.parent.mkdir(parents=True, exist_ok=True)
    DRAWN.write_text(text)


def tested(tree: Tree, recorded: Record, mutant: Mutant) -> str:
    if mutant.number >= 0:
        return outcome(recorded.of_switch(mutant.number), mutant.number)
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
    late = [each for each in found if each.startswith(BY_THE_REST)]
    print(
        f"{len(found)} of {len(ran)} mutants were found, {len(late)} by the rest alone"
    )
    quick_enough = len(found) - len(late) >= WANTED * len(found)
    return 0 if len(found) >= WANTED * len(ran) and quick_enough else 1


if __name__ == "__main__":
    sys.exit(main())
