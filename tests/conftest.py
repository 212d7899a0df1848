"""The tests run under every mapping, with a virtual GPU that checks strictly."""

import gc
import os
import random
import re
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pairwise
import pytest
from hypothesis import settings
from never_run import NeverRun, runs_all_forms
from said_mapping import SaidMapping

# In the environment, so that processes that tests start have the same devices; and set
# before devices are listed. A machine with a GPU of its own sets it to "off".
os.environ.setdefault("XPURT_VIRTUAL_GPU", "strict")
# Not the user's cache; all processes that run tests share this one.
os.environ.setdefault(
    "XPURT_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "test-kernels")
)
# A lock that is taken out of order raises an error, also in processes that tests start.
os.environ.setdefault("XPURT_CHECK_LOCKS", "1")

# On a busy machine an example takes longer; how long it takes is for the bench.
settings.register_profile("xpurt", deadline=None)
settings.load_profile("xpurt")

pytest_plugins = ["pytest_xpurt", "pytester", "headless_browser"]

MAPPINGS = ["CPU", "explicit", "GPU", "AUTO"]


_chosen_by_user = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_chosen_by_user] = bool(config.option.xpu_mapping)
    if runs_all_forms(config):
        config.pluginmanager.register(NeverRun())
    config.pluginmanager.register(SaidMapping())
    if not config.option.xpu_mapping:
        config.option.xpu_mapping = list(MAPPINGS)
    config.addinivalue_line(
        "markers",
        "mappings(*names): those that the test runs under by default",
    )
    config.addinivalue_line(
        "markers",
        "each_value: by default, the cases in which each value of each parameter occurs",
    )
    config.addinivalue_line("markers", "one_in(n): by default, one case of n")


# Runs before -m reads the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes are started first, and others run beside them."""
    items.sort(key=lambda item: item.get_closest_marker("takes_minutes") is None)
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if "xpu" in params and not _is_chosen(item, params["xpu"]):
            item.add_marker("slow")
    leave_to_the_rest(items)


def leave_to_the_rest(items: list[pytest.Item]) -> None:
    """Marks what the cases of a function leave out that `make test` runs."""
    functions: dict[str, dict[str, pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and not is_left_out(item):
            cases = functions.setdefault(item.nodeid.partition("[")[0], {})
            cases[item.nodeid] = item
    for cases in functions.values():
        chosen = chosen_cases(cases)
        for name, item in cases.items():
            if name not in chosen:
                item.add_marker("rest")


def is_left_out(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("slow", "programs", "rest")))


def chosen_cases(cases: dict[str, pytest.Function]) -> set[str]:
    params = {
        name: {key: id(value) for key, value in item.callspec.params.items()}
        for name, item in cases.items()
        if hasattr(item, "callspec")
    }
    if not params:
        return set(cases)
    item = next(iter(cases.values()))
    if (sample := item.get_closest_marker("one_in")) is not None:
        return pairwise.one_in(*sample.args, params)
    alone = item.get_closest_marker("each_value") is not None
    return pairwise.covering(params, 1 if alone else 2)


def _is_chosen(item: pytest.Item, mapping: str) -> bool:
    """Whether the test runs by default under the mapping. A test runs under "CPU" or
    "GPU", in turn by its name: both run the same kernels. "explicit" puts the devices of
    the others behind other ordinals, and "AUTO" sends ops to them: a sixth and a quarter
    of the tests run under these. The tests of the choices of "AUTO" itself name it, as
    do those of a kind of device. `make test-all` runs all of them."""
    chosen = item.get_closest_marker("mappings")
    if chosen is not None:
        return mapping in chosen.args
    if mapping in ("CPU", "GPU"):
        if item.config.stash[_chosen_by_user] or item.get_closest_marker("beyond_cpu"):
            return True
        name = re.sub(rf"\b{mapping}\b", "", item.nodeid)
        return zlib.crc32(name.encode()) % 2 == (mapping == "GPU")
    one_of = {"explicit": 6, "AUTO": 4}.get(mapping, 1)
    return zlib.crc32(item.nodeid.encode()) % one_of == 0


_modules = 0  # those that are frozen
_left = 0  # storages on xpu that files have left


def freeze_what_lives() -> None:
    """What is loaded by now lives to the end. Frozen, it is not scanned again by each
    collection, for example at a change of the mapping. Tensors on xpu are never frozen:
    a cycle that holds them would keep them, and with them the mapping, for good."""
    global _modules
    _modules = len(sys.modules)
    if _storages_on_xpu():
        gc.unfreeze()  # what was frozen alive may be garbage by now
    gc.collect()
    if not _storages_on_xpu():
        gc.freeze()


def _storages_on_xpu() -> int:
    extension = sys.modules.get("xpurt._C")
    return extension.live_memory()[0] if extension else 0


def pytest_collection_finish() -> None:
    freeze_what_lives()
    if "xpurt._C" in sys.modules:
        from kernels.refused_sources import check_sources

        check_sources()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A collection that scans PyTorch's compiler, which a test imported, takes a second.
    No file leaves tensors on xpu, which would hold the mapping in the tests of others."""
    global _left
    ends_file = nextitem is None or nextitem.path != item.path
    if isinstance(item, pytest.Function):
        item.funcargs.clear()  # pytest keeps the values of fixtures until the report
    if ends_file or len(sys.modules) > _modules + 50:
        freeze_what_lives()
    if ends_file:
        more, _left = _storages_on_xpu() - _left, _storages_on_xpu()
        if more > 0:
            pytest.fail(
                f"{item.path.name} leaves {more} storages on xpu alive", pytrace=False
            )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test draws the same numbers and begins with the same choices each time,
    independently of the tests before it. Where time is limited, what `make test` leaves
    out is skipped at the end of it: REST_UNTIL is in seconds, as time.time()."""
    until = float(os.environ.get("REST_UNTIL", "inf"))
    if time.time() > until and item.get_closest_marker("rest"):
        pytest.skip("the time for more cases is over")
    random.seed(0)
    if "torch" in sys.modules:
        # The CPU's generator alone: torch.manual_seed would seed every device.
        sys.modules["torch"].default_generator.manual_seed(0)
    if "xpurt._C" in sys.modules:
        # What they taught the choice of tiers would choose for this one.
        sys.modules["xpurt._C"].testing.forget_statistics()


@pytest.fixture(autouse=True)
def locks_in_order() -> Iterator[None]:
    """No thread took a lock out of order, not even where the error was caught."""
    extension = sys.modules.get("xpurt._C")
    before = extension.locks_out_of_order() if extension else 0
    yield
    if extension:
        assert extension.locks_out_of_order() == before
