"""Which changes are made: a sample of the sites, the same for the same sources."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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
    number: int = -1  # that switches it on; of csrc


def drawn(in_csrc: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Each second one is in csrc, or all, if there are no texts. Each file has the same
    share, or all of its mutants."""
    draw = random.Random(seed)
    if not ROOM.texts:
        return share(in_csrc, count, draw)
    halves = (share(each, count // 2, draw) for each in (in_csrc, of_texts()))
    return [each for pair in zip(*halves, strict=False) for each in pair]


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


def of_csrc() -> list[Mutant]:
    """All of csrc, with numbers."""
    found = [each for path in files_of(ROOM.csrc) for each in apart(mutants_of(path))]
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


def mutants_of(path: str) -> list[Mutant]:
    text = (ROOT / path).read_text()
    lines = text.split("\n")
    seen: Counter[str] = Counter()
    made = []
    for site in sites(text):
        line = lines[site.line]
        # Python's own lines, between the texts.
        if path.endswith(".py") and not line.endswith((";", "{", "{{")):
            continue
        name = f"{path}: {line.strip()} // {site.old} -> {site.new}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" // {seen[name]}"
        made.append(Mutant(path, site, name))
    return made
