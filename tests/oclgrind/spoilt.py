"""Spoils kernels whose launches are recorded, as a programmer might, one at a time."""

import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from xpurt.launch_recorder import read_launch
from xpurt.testing.kernels import check_recorded


@dataclass(frozen=True, slots=True)
class Spoilt:
    what: str
    program: Path
    source: str


# Patterns of OpenCL C, and what takes the place of one match.
CHANGES = (
    ("a barrier is left out", r"\bbarrier\(\w+\);", ";"),
    ("a bound is off by one", r"(?<=if \(i) >= (?=[\w.]+\) return;)", " > "),
    ("a bound is off by one", r"(?<=for \(long k = 0; k) < ", " <= "),
    ("a bound is off by one", r"(?<=for \(int k = 0; k) < ", " <= "),
    ("the first element is left out", r"(?<=for \(long k = )0(?=;)", "1"),
    ("a local index is another's", r"\bget_local_id\(0\)", "(get_local_id(0) / 2)"),
    ("an address is one too large", r"(?<=out_store\()", "1 + "),
)


def spoilt_kernels(folder: Path, seed: int = 0) -> Iterator[Spoilt]:
    """Of each kind of change in turn, in programs that are drawn."""
    programs = sorted(folder.glob("*.cl"))
    draw = random.Random(seed)
    draw.shuffle(programs)
    of_changes = [list(_spoilt(programs, draw, *change)) for change in CHANGES]
    while any(of_changes):
        for each in of_changes:
            if each:
                yield each.pop()


def _spoilt(
    programs: list[Path], draw: random.Random, what: str, pattern: str, instead: str
) -> Iterator[Spoilt]:
    for program in programs:
        source = program.read_text()
        kernels = source.find("__kernel")
        sites = [m for m in re.finditer(pattern, source) if m.start() > kernels]
        if sites:
            site = draw.choice(sites)
            changed = source[: site.start()] + instead + source[site.end() :]
            yield Spoilt(what, program, changed)


def spoil_and_check(folder: Path, library: str, count: int) -> tuple[int, int]:
    """How many were found, and how many ran."""
    launches: dict[str, list[Path]] = {}
    for path in folder.glob("*.launch"):
        launches.setdefault(read_launch(path).program, []).append(path)
    found = run = 0
    for spoilt in spoilt_kernels(folder):
        if run == count:
            break
        of_program = launches.get(spoilt.program.stem, [])
        if not of_program:
            continue
        is_found = _is_found(spoilt, of_program, library)
        run += 1
        found += is_found
        if not is_found:
            print(f"not found: {spoilt.what} in {of_program[0].name}")
    return found, run


def _is_found(spoilt: Spoilt, launches: list[Path], library: str) -> bool:
    with TemporaryDirectory() as made:
        folder = Path(made)
        (folder / spoilt.program.name).write_text(spoilt.source)
        for path in launches:
            shutil.copy(path, folder)
        check = check_recorded(folder, library, 120)
    return bool(check.faults or check.differing)
