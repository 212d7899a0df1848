"""What `make sanitize` runs on each build."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]


class Run(NamedTuple):
    name: str
    arguments: tuple[str, ...]  # of Python
    environment: Mapping[str, str] = MappingProxyType({})


def tests(name: str, *paths: str) -> Run:
    """Tests, by their paths in the folder `tests`; arguments of pytest begin with -."""
    at = [each if each.startswith("-") else str(TESTS / each) for each in paths]
    settings = ("-c", str(TESTS.parent / "pyproject.toml"), "-p", "no:cacheprovider")
    return Run(name, ("-m", "pytest", "-q", *settings, *at))


def program(name: str, learn: bool, *arguments: str) -> Run:
    """Random steps of threads: see threads_program.py."""
    environment = {
        "XPURT_MAPPING": "AUTO",
        "XPURT_VIRTUAL_GPU": "strict",
        "XPURT_CHECK_LOCKS": "1",
        "XPURT_LEARN": str(int(learn)),
        "XPURT_CACHE_DIR": str(TESTS.parent / "build" / "test-kernels"),
    }
    arguments = (str(TESTS / "auto" / "threads_program.py"), *arguments)
    return Run(name, arguments, environment)


THREADS = [
    program("random-threads", False, "0", "20", "2"),
    program("random-threads-learning", True, "1", "20", "2"),
    program("random-threads-fault", False, "300", "10", "1", "faults"),
    program("random-threads-running-fault", True, "301", "10", "1", "faults"),
]

RUNS = {
    "address": [*THREADS],
    "thread": [*THREADS],
    "locks": [*THREADS],
}
