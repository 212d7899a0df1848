"""Compiles the kernels that xpurt gives to drivers by the compilers of vendors' GPUs:
`make test-compilers`. No GPU is needed.

    python tests/compilers/run_compilers.py [--sample] [--chips NAME ...] [--table FILE]
        [--recorded]

The kernels are recorded on a strict virtual GPU with what a chip has, for each kind of
chip. The exit status is 1 if one does not compile, or needs more registers than there
are ("spills"), and is not in known_spills.txt; and if an entry there does not.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).parents[1]))  # of kinds_of_gpus.py

from chips import CHIPS, PACKAGES, Chip, DoesNotCompile, Figures
from recorded_programs import Program, programs_in, record
from work_of_rows import AMD, INTEL, off

HERE = Path(__file__).parent
KNOWN = HERE / "known_spills.txt"

CONFORMANCE = (
    *("conformance", "--mapping", "GPU", "--virtual-gpu", "strict", "--policy", "sycl"),
    *("--timeout", "600"),
)
OPS = (
    *("add", "amax", "bmm", "cat", "cumsum", "erfinv", "gather", "index_put", "matmul"),
    *("norm", "nn.functional.conv2d", "nn.functional.layer_norm", "sort", "where"),
    *("nn.functional.scaled_dot_product_attention", "nn.functional.cross_entropy"),
)
SAMPLE = (
    (
        "-m",
        "xpurt",
        *CONFORMANCE,
        "--sample",
        "8",
        "--samples-per-pair",
        "2",
        "--ops",
        *OPS,
    ),
)
ROWS_OF_SAMPLE = ("exp", "gelu", "lgamma", "erfinv", "remainder")
# Their kernels are spoilt, or for other devices.
LEFT_OUT = (
    "test_refused_compiled_kernels",
    "test_bad_compile_input",
    "test_on_small_devices",
)
WHOLE = (
    ("-m", "xpurt", *CONFORMANCE, "--sample", "6", "--samples-per-pair", "1"),
    *(
        (
            *("-m", "pytest", "-q", "--xpu-mapping", "GPU", "--xpu-required", path),
            *(f"--ignore=tests/compiler/{each}.py" for each in LEFT_OUT),
        )
        for path in ("tests/compiler", "tests/kernels/test_models.py")
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    chip: Chip
    program: Program
    figures: list[Figures]
    error: str


def compiled(chip: Chip, program: Program) -> Result:
    try:
        return Result(chip, program, chip.figures(program), "")
    except DoesNotCompile as error:
        return Result(chip, program, [], str(error))


def all_compiled(programs: Iterable[tuple[Chip, Program]]) -> list[Result]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda each: compiled(*each), programs))


def recorded(
    chips: Sequence[Chip], is_sample: bool, anew: bool
) -> list[tuple[Chip, Program]]:
    """Each chip with each program for its kind."""
    kinds: dict[str, list[Chip]] = defaultdict(list)
    for chip in chips:
        kinds[str(chip.kind)].append(chip)
    found = []
    for alike in kinds.values():
        chip = alike[0]
        folder = PACKAGES / "recorded" / f"{chip.name}{'-sample' if is_sample else ''}"
        commands = [
            (sys.executable, *each) for each in (SAMPLE if is_sample else WHOLE)
        ]
        settings = {
            f"XPURT_VIRTUAL_GPU_{name}": each for name, each in chip.kind.items()
        }
        programs = record(folder, commands, settings) if anew else programs_in(folder)
        print(f"{', '.join(each.name for each in alike)}: {len(programs)} programs")
        found += [(each, program) for program in programs for each in alike]
    return found


def table(results: Sequence[Result]) -> str:
    lines = [
        "| chip | programs | do not compile | kernels that spill | registers: median, most"
        " | occupancy: median, least | most local memory | work-items together |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    by_chip: dict[str, list[Result]] = defaultdict(list)
    for each in results:
        by_chip[f"{each.chip.vendor} {each.chip.name}"].append(each)
    for name, of in by_chip.items():
        figures = [figure for each in of for figure in each.figures]
        occupancy = [of[0].chip.occupancy(each) for each in figures] or [1.0]
        registers = [each.registers for each in figures] or [0]
        lanes = sorted({each.lanes for each in figures})
        lines.append(
            f"| {name} | {len(of)} | {sum(bool(each.error) for each in of)} | "
            f"{sum(each.spilled > 0 for each in figures)} | "
            f"{median(registers):.0f}, {max(registers)} | "
            f"{median(occupancy):.2f}, {min(occupancy):.2f} | "
            f"{max((each.local for each in figures), default=0)} | "
            f"{', '.join(map(str, lanes))} |"
        )
    return "\n".join(lines)


def known_spills() -> dict[tuple[str, str], str]:
    """The reason, by chip and kernel."""
    found = {}
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith("#"):
            chip, kernel, reason = line.split(maxsplit=2)
            found[chip, kernel] = reason
    return found


def faults(results: Sequence[Result]) -> list[str]:
    known = known_spills()
    found = []
    for each in results:
        if each.error:
            first = next(
                (line for line in each.error.splitlines() if "error" in line),
                each.error[:200],
            )
            found.append(f"{each.chip.name} {each.program.name}: {first}")
        found += [
            f"{each.chip.name} {figure.kernel} ({each.program.name}) spills "
            f"{figure.spilled} bytes of {figure.registers} registers"
            for figure in each.figures
            if figure.spilled and (each.chip.name, figure.kernel) not in known
        ]
    return sorted(set(found))


def unused(results: Sequence[Result]) -> list[str]:
    """Entries of known_spills.txt for the chips of a whole run that nothing needs."""
    chips = {each.chip.name for each in results}
    spilled = {
        (each.chip.name, figure.kernel)
        for each in results
        for figure in each.figures
        if figure.spilled
    }
    return [
        f"{KNOWN.name}: {kernel} does not spill on {chip}"
        for chip, kernel in known_spills()
        if chip in chips and (chip, kernel) not in spilled
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", action="store_true", help="16 ops alone")
    parser.add_argument("--chips", nargs="+", default=[each.name for each in CHIPS])
    parser.add_argument("--table", type=Path, help="write the table")
    parser.add_argument(
        "--recorded", action="store_true", help="what an earlier run recorded"
    )
    arguments = parser.parse_args()
    chips = [each for each in CHIPS if each.name in arguments.chips]
    results = all_compiled(recorded(chips, arguments.sample, not arguments.recorded))
    made = table(results)
    print(made)
    if arguments.table is not None:
        arguments.table.write_text(made + "\n")
    found = faults(results)
    if not arguments.sample:
        found += unused(results)
    if {INTEL, AMD} <= set(arguments.chips):
        found += off(ROWS_OF_SAMPLE if arguments.sample else None)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
