"""What `make sanitize` runs on each build."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

TESTS = Path(__file__).resolve().parents[1]
# What `make test` runs, and the rest.
BOTH = ("-m", "not slow and not programs")


class Run(NamedTuple):
    name: str
    arguments: tuple[str, ...]  # of Python
    environment: Mapping[str, str] = MappingProxyType({})


def tests(name: str, *paths: str) -> Run:
    """Tests, by their paths in the folder `tests`; arguments of pytest begin with -."""
    at = [each if each.startswith("-") else str(TESTS / each) for each in paths]
    settings = (
        "-c",
        str(TESTS.parent / "pyproject.toml"),
        "-p",
        "no:cacheprovider",
        *BOTH,
    )
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
    program("random-threads-disjoint", False, "6000", "20", "1", "disjoint", "inner"),
    program("random-threads-fault", False, "300", "10", "1", "faults"),
    program("random-threads-running-fault", True, "301", "10", "1", "faults"),
]

AUTO = [
    tests("auto-threads", "auto/test_threads.py"),
    tests(
        "auto-storages",
        "auto/test_host_writes.py",
        "auto/test_raw_pointers.py",
        "auto/test_storages_inside.py",
        "auto/test_order_by_data.py",
    ),
    tests("auto-sequences", "auto/test_sequences.py", "auto/test_eviction.py"),
]

STREAMS = tests("streams", "streams")
# One test expects a wait for two devices at once, which needs a host that submits within
# the time of a kernel.
STREAMS_OF_A_SLOW_HOST = tests("streams", "streams", "-knot many_waits_builds")

BELOW = [
    tests("locks", "test_lock_order.py"),
    tests("allocator", "allocator"),
    # Some tests end their process by reading memory that it must not read.
    tests("virtual-gpu", "virtual_gpu", "-knot unreadable"),
    tests("usm-on-svm", "usm_on_svm", "-knot (needs_a or indirect_access)"),
]

OPS = [
    tests("native", "native", "--xpu-mapping=AUTO"),
    tests(
        "kernels",
        "kernels/test_reductions.py",
        "kernels/test_matmul.py",
        "kernels/test_row_kinds.py",
        "kernels/test_sorting.py",
    ),
]

RUNS = {
    "address": [*THREADS, *AUTO, STREAMS, *BELOW, *OPS],
    "thread": [*THREADS, *AUTO, STREAMS_OF_A_SLOW_HOST, *BELOW],
}
