"""The pytest plugin of xpurt: the fixture `xpu`, `--xpu-mapping`, a leak check.

It lies outside the package on purpose. It is loaded into every pytest of an environment
that has xpurt, and importing anything of the package imports torch. Only a test that
uses the fixture `xpu` pays for that.
"""

import gc
import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch

LEAKS_ALLOWED = "xpu_may_leak"
_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("xpurt", "tests on an xpu device")
    group.addoption(
        "--xpu-mapping",
        action="append",
        default=[],
        metavar="MAPPING",
        help="run the tests that use the fixture xpu under this mapping, as in CPU or "
        "AUTO:GPU,CPU; given several times, run them under each",
    )
    group.addoption(
        "--xpu-required",
        action="store_true",
        help="fail, not skip, where there is no such device",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{LEAKS_ALLOWED}: the test may leave xpu tensors behind (see the fixture xpu)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mappings = metafunc.config.getoption("--xpu-mapping")
    if mappings and "xpu" in metafunc.fixturenames:
        metafunc.parametrize("xpu", mappings, indirect=True, scope="session")


@pytest.fixture(scope="session")
def xpu(request: pytest.FixtureRequest) -> "torch.device":
    """The device xpu:0, under each mapping given by --xpu-mapping.

    A test that uses it is skipped with the reason if there is no such device; with
    --xpu-required it fails. It also fails if it leaves xpu tensors behind, unless it is
    marked `xpu_may_leak`.
    """
    mapping: str | None = getattr(request, "param", None)
    reason = _unavailable(mapping)
    if reason is not None:
        if request.config.getoption("--xpu-required"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    import torch

    return torch.device("xpu", 0)


def _unavailable(mapping: str | None) -> str | None:
    """The reason why there is no xpu under `mapping`; None, with the mapping in force,
    if there is one.

    A mapping of None keeps the one that is in force.
    """
    try:
        import torch

        import xpurt
    except ImportError as error:
        return f"xpurt can't be imported: {error}"
    try:
        if mapping is not None:
            xpurt.set_xpu_mapping(mapping)
        torch.empty(1, device="xpu")
    # A MappingError, or PyTorch's own error if xpurt is not active.
    except (RuntimeError, AssertionError) as error:
        return f"no xpu under the mapping {mapping or 'in force'}: {error}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed] = True
    return report


# Autouse fixtures start before the others of their scope, and finish after them. So the
# tensors of longer-lived fixtures exist at both counts, and those of the test's own
# fixtures are gone at the second.
@pytest.fixture(autouse=True)
def _xpu_leak_check(request: pytest.FixtureRequest) -> Iterator[None]:
    if "xpu" not in request.fixturenames or request.node.get_closest_marker(
        LEAKS_ALLOWED
    ):
        yield
        return
    request.getfixturevalue("xpu")
    before = _live_memory()
    if before[0]:
        # Garbage freed during the test would hide a leak of the same size.
        before = _live_memory_without_garbage()
    yield
    # The traceback of a failed test holds its tensors, and it has failed anyway.
    if request.node.stash.get(_failed, False):
        return
    # pytest keeps the values of finished fixtures until the test is reported.
    request.node.funcargs.clear()
    after = _live_memory()
    # Threads of autograd release their graphs a moment after the backward returns.
    deadline = time.monotonic() + 1
    while after[0] > before[0] and time.monotonic() < deadline:
        after = _live_memory_without_garbage()
        time.sleep(0.02)
    tensors, size_bytes = after[0] - before[0], after[1] - before[1]
    if tensors > 0:
        pytest.fail(
            f"the test left {tensors} xpu storage{'s'[: tensors != 1]} of {size_bytes} "
            f"bytes alive; drop them, or mark the test {LEAKS_ALLOWED}",
            pytrace=False,
        )


def _live_memory() -> tuple[int, int]:
    """The number of live storages on xpu, and their bytes."""
    from xpurt import _C

    storages, size_bytes = _C.live_memory()
    return storages, size_bytes


def _live_memory_without_garbage() -> tuple[int, int]:
    # A collection takes longer than most tests: done only if the counts require it.
    gc.collect()
    return _live_memory()
