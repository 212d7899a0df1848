"""Spoils kernels whose launches are recorded, one change of a kernel, and counts which of
the changes the checker finds.

A change counts only if a launch does another thing after it. What decides is not the
checker but the CPU's OpenCL driver (plain_device.py). The changed program runs each of its
recorded launches there twice: with the work-items of a group from first to last, and from
last to first, since a barrier that is missing shows only in some order; and with two
contents of the memory around the tensors and of that which nothing wrote, since what is
read there shows only in what is written. The change counts if a launch writes other bytes
than the recorded ones, writes outside of its memory, crashes, or does not end. A missing
initial value may be the right one by chance: there, the plain device runs a program with
a wrong value.

All else is equivalent, and listed with its reason. Among it may be faults: two work-items
that write the same bytes to one place, or a value that is read from outside and not used.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from changes import CHANGES, Change, changed

from xpurt.launch_recorder import read_launch
from xpurt.testing.kernels import KernelCheck, check_recorded

PLAIN_DEVICE = Path(__file__).with_name("plain_device.py")
DRIVER = Path(sys.prefix) / "lib" / "libintelocl.so"
CRASHES = "it crashes, or does not end"
REPLAYED = 20  # launches of a changed program, of those that differ
# Candidates of one template, of which the first that is not equivalent counts.
TRIES = 6


@dataclass(slots=True)
class Spoilt:
    change: Change
    template: str
    line: str  # before the change
    program: Path
    source: str
    on_plain_device: str  # the source that runs there
    launches: list[Path]
    builds: bool = True
    effects: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.change.what} in {self.template}: {self.line}"


def template_of(kernel: str) -> str:
    """Kernels of one op and step differ by types and shapes: add_111_ff_f is add."""
    return re.sub(r"(_[0-9n]+|_[flthiSTNsdbuc]+[0-9]*|_adds|_w)*$", "", kernel)


def candidates(folder: Path, seed: int) -> Iterator[list[Spoilt]]:
    """Of one template after the other, all changes in a program that is drawn."""
    draw = random.Random(seed)
    launches: dict[str, list[Path]] = {}
    templates: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.launch")):
        launch = read_launch(path)
        if launch.program not in launches:
            templates.setdefault(template_of(launch.kernel), []).append(launch.program)
        launches.setdefault(launch.program, []).append(path)
    for template in draw.sample(sorted(templates), len(templates)):
        name = draw.choice(templates[template])
        program = folder / f"{name}.cl"
        source = program.read_text()
        lines = source.splitlines()
        every = [
            Spoilt(
                each, template, lines[at - 1].strip(), program, *made, launches[name]
            )
            for each in CHANGES
            for at, *made in changed(source, each)
        ]
        yield draw.sample(every, len(every))


def drawn(
    folder: Path, count: int, seed: int, equivalent: list[Spoilt]
) -> Iterator[Spoilt]:
    """One of each template that has an effect; rare kinds of changes come first."""
    counted: Counter[str] = Counter()
    for every in candidates(folder, seed):
        tried: set[str] = set()
        while len(tried) < TRIES:
            left = [each for each in every if each.change.what not in tried]
            if not left:
                break
            spoilt = min(left, key=lambda each: counted[each.change.what])
            tried.add(spoilt.change.what)
            spoilt.effects = effects(spoilt)
            if spoilt.effects:
                counted[spoilt.change.what] += 1
                yield spoilt
                break
            if spoilt.builds:
                equivalent.append(spoilt)
        if counted.total() == count:
            return


def effects(spoilt: Spoilt) -> Counter[str]:
    """In which ways launches differ on the plain device. Keeps those that do."""
    with TemporaryDirectory() as made:
        program = Path(made) / spoilt.program.name
        program.write_text(spoilt.on_plain_device)
        outcomes = dict(_outcomes(program, spoilt.launches))
    spoilt.builds = bool(outcomes)
    spoilt.launches = [each for each in spoilt.launches if outcomes.get(each.name)]
    return Counter(filter(None, outcomes.values()))


def _outcomes(program: Path, launches: Sequence[Path]) -> Iterator[tuple[str, str]]:
    command = [sys.executable, str(PLAIN_DEVICE), str(DRIVER), str(program)]
    variables = {**os.environ, "CL_CONFIG_CPU_VECTORIZER_MODE": "1"}
    variables.pop("LD_LIBRARY_PATH", None)  # Oclgrind's LLVM
    try:
        done = subprocess.run(
            [*command, *map(str, launches)],
            capture_output=True,
            text=True,
            env=variables,
            timeout=120,
        )
        said, is_wrong = done.stdout, done.returncode != 0
        if "Refused" in done.stderr:
            return
    except subprocess.TimeoutExpired as late:
        said, is_wrong = (late.stdout or b"").decode(), True
    begun = ""
    for line in map(json.loads, said.splitlines()):
        if "begins" in line:
            begun = line["begins"]
        else:
            yield line["launch"], line["outcome"]
            begun = ""
    if is_wrong:
        yield begun or launches[-1].name, CRASHES


def find(spoilt: Spoilt, library: str) -> None:
    """Replays launches that differ on the plain device, as they were and spoilt."""
    step = max(1, len(spoilt.launches) // REPLAYED)
    spoilt.launches = spoilt.launches[::step][:REPLAYED]
    before = _checked(spoilt, spoilt.program.read_text(), library)
    after = _checked(spoilt, spoilt.source, library)
    spoilt.found = sorted(_kinds(after) - _kinds(before))


def _kinds(check: KernelCheck) -> set[str]:
    kinds: set[str] = {each.kind for each in check.faults}
    kinds |= {"other results"} if check.differing else set()
    return kinds | ({"crashes, or does not end"} if check.not_run else set())


def _checked(spoilt: Spoilt, source: str, library: str) -> KernelCheck:
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / spoilt.program.name).write_text(source)
        for path in spoilt.launches:
            shutil.copy(path, folder)
        return check_recorded(folder, library, 120)


def spoil_and_check(
    folder: Path, library: str, count: int, seed: int = 0
) -> tuple[int, int]:
    """How many were found, and how many counted; prints the rest."""
    equivalent: list[Spoilt] = []
    counted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    by: Counter[str] = Counter()
    for spoilt in drawn(folder, count, seed, equivalent):
        find(spoilt, library)
        counted[spoilt.change.what] += 1
        found[spoilt.change.what] += bool(spoilt.found)
        by.update(spoilt.found)
        how = ", ".join(spoilt.found) or f"NOT FOUND, {dict(spoilt.effects)}"
        print(f"{spoilt}\n    {how}", flush=True)
    print(f"equivalent: {len(equivalent)}")
    for each in equivalent:
        print(f"{each}\n    {each.change.unless}")
    for what, number in counted.items():
        print(f"{what}: {number}, found {found[what]}")
    print(f"found by: {dict(by)}")
    return found.total(), counted.total()
