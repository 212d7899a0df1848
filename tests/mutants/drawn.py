"""Which changes are made: a sample of the sites, the same for the same sources."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from python_sites import python_sites
from rooms import ROOM
from sites import Site, sites
from switched_tree import ROOT

# Functions of numbers: no geometry, bounds or strides. The conformance run and the
# sweeps of values test them.
FUNCTIONS = {
    *("airy", "bessel", "chebyshev", "complex", "counts", "floating", "gamma"),
    *("incomplete_gamma", "integral", "inverse_error", "log_gamma", "near_zero"),
    *("modified_bessel", "next", "polynomials", "scaled_error", "several_results"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    path: str
    site: Site
    name: str  # without the number of the line, which changes
    number: int = -1  # that switches it on; not of texts


def drawn(switched: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """In turn one of csrc, one of the texts, and one of Python, where the room has these.
    Each file has the same share, or all of its mutants."""
    draw = random.Random(seed)
    switched = list(switched)
    kinds = [
        [each for each in switched if each.path.startswith("xpurt/csrc/")],
        of_texts(),
        [each for each in switched if each.path.endswith(".py")],
    ]
    kinds = [each for each in kinds if each]
    shares = [share(each, count // len(kinds), draw) for each in kinds]
    return [each for turn in zip(*shares, strict=False) for each in turn]


def share(mutants: Iterable[Mutant], count: int, draw: random.Random) -> list[Mutant]:
    by_file: dict[str, list[Mutant]] = {}
    for each in mutants:
        by_file.setdefault(each.path, []).append(each)
    files = list(by_file.values())
    for each in files:
        draw.shuffle(each)
    draw.shuffle(files)
    taken: list[Mutant] = []
    for turn in range(max(map(len, files), default=0)):
        taken += [found[turn] for found in files if len(found) > turn]
    return taken[:count]


def of_switches() -> list[Mutant]:
    """All of csrc and of Python, with numbers."""
    paths = [*files_of(ROOM.csrc), *files_of(ROOM.python)]
    found = [each for path in paths for each in apart(mutants_of(path, of_code=True))]
    return [replace(each, number=n) for n, each in enumerate(found)]


def of_texts() -> list[Mutant]:
    return [each for path in files_of(ROOM.texts) for each in mutants_of(path)]


def files_of(patterns: Iterable[str]) -> list[str]:
    found = sorted(each for pattern in patterns for each in ROOT.glob(pattern))
    return [str(p.relative_to(ROOT)) for p in found if p.stem not in FUNCTIONS]


def apart(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Without those that overlap an earlier one."""
    taken: dict[int, list[Site]] = {}
    for each in mutants:
        site, here = each.site, taken.setdefault(each.site.line, [])
        if not any(site.begin < s.end and s.begin < site.end for s in here):
            here.append(site)
            yield each


def mutants_of(path: str, of_code: bool = False) -> list[Mutant]:
    """of_code: of a Python file, those of its code, not of the texts in it."""
    text = (ROOT / path).read_text()
    lines = text.split("\n")
    seen: Counter[str] = Counter()
    made = []
    is_python = path.endswith(".py")
    for site in python_sites(text) if is_python and of_code else sites(text):
        line = lines[site.line]
        # Python's own lines, between the texts.
        if is_python and not of_code and not line.endswith((";", "{", "{{")):
            continue
        name = f"{path}: {line.strip()} // {site.old} -> {site.new}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" // {seen[name]}"
        made.append(Mutant(path, site, name))
    return made
