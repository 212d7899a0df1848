"""Plants faults in a layer above eager mode, one at a time, and runs its tests.

    python tests/mutants/run_faults_of_layers.py optimize [--only TEXT ...]

Ends with 1 if fewer than 95 of 100 were found, if a line is no longer there, or if the
tests fail without a fault.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faults_of_layers import FAULTS, TESTS, Fault
from switched_tree import ROOT, environment, link_package

WANTED = 0.95


def run_tests(tree: Path, tests: tuple[str, ...], most_seconds: float | None) -> bool:
    """Whether the tests pass on the package in `tree`, in `most_seconds`."""
    # Processes of tests import from the working directory first.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow and not programs",  # the rest of a layer's tests is run, too
    ]
    variables = environment() | {"PYTHONPATH": f"{tree}"}
    try:
        ended = subprocess.run(
            [*command, *(str(ROOT / each) for each in tests)], env=variables,
            cwd=tree, capture_output=True, timeout=most_seconds,
        )  # fmt: skip
        return ended.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def is_found(
    fault: Fault, tree: Path, tests: tuple[str, ...], most_seconds: float
) -> bool:
    source = (ROOT / "xpurt" / fault.file).read_text()
    if source.count(f"{fault.line}\n") != 1:
        sys.exit(f"{fault.file} has not one line {fault.line!r}")
    file = tree / "xpurt" / fault.file
    file.unlink()
    file.write_text(source.replace(f"{fault.line}\n", f"{fault.becomes}\n"))
    try:
        return not run_tests(tree, tests, most_seconds)
    finally:
        file.unlink()
        file.symlink_to(ROOT / "xpurt" / fault.file)


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs tests on planted faults.")
    parser.add_argument("layer", choices=sorted(FAULTS))
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        help="faults whose text contains one of these",
    )
    given = parser.parse_args()
    faults = [
        each
        for each in FAULTS[given.layer]
        if any(text in str(each) for text in given.only)
    ]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        link_package(tree)
        for built in (ROOT / "xpurt").rglob("*"):
            if built.suffix == ".so" or built.name == "_built_for.py":
                (tree / built.relative_to(ROOT)).symlink_to(built)
        tests = TESTS[given.layer]
        began = time.monotonic()
        if not run_tests(tree, tests, None):
            sys.exit("The tests fail without a fault.")
        seconds = time.monotonic() - began
        print(f"without a fault the tests pass, in {seconds:.0f} s", flush=True)
        found = 0
        for fault in faults:
            was_found = is_found(fault, tree, tests, 60 + 3 * seconds)
            found += was_found
            print("found    " if was_found else "NOT FOUND", fault, flush=True)
    print(f"{found} of {len(faults)} faults in {given.layer} are found")
    return 0 if found >= WANTED * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
