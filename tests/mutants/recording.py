"""A pytest plugin that records, per test, whether it passes, which changes of csrc it
reaches and which kernels it launches: lines of JSON, appended to MUTANTS_RECORD."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

REACHED = Path(os.environ["MUTANTS_REACHED"])
KERNELS = Path(f"{REACHED}.kernels")
RECORD = Path(os.environ["MUTANTS_RECORD"])

_failed: set[str] = set()
_skipped: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)
    elif report.skipped:
        _skipped.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    begun = time.monotonic()
    result = yield
    if item.nodeid in _failed | _skipped or not REACHED.exists():
        return result
    numbers = [n for n, reached in enumerate(REACHED.read_bytes()) if reached]
    # It is mapped by processes: the same file, with other bytes.
    with REACHED.open("r+b") as file:
        file.write(bytes(REACHED.stat().st_size))
    keys: set[str] = set()
    if KERNELS.exists():
        keys = set(KERNELS.read_text(errors="replace").splitlines())
        os.truncate(KERNELS, 0)
    line = {
        "test": item.nodeid,
        "seconds": round(time.monotonic() - begun, 3),
        "numbers": numbers,
        "is_rest": item.get_closest_marker("rest") is not None,
        "kernels": sorted(keys),
    }
    with RECORD.open("a") as record:
        print(json.dumps(line), file=record)
    return result
