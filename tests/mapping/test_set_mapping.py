"""Setting, changing and restoring the mapping, on the real CPU device."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from own_process import run

import xpurt
from xpurt import _C, mapping
from xpurt.errors import MappingError
from xpurt.startup import extension


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins under CPU, and leaves the mapping as it found it."""
    # Storages are allocated here without the runtime module.
    monkeypatch.setattr(torch.xpu, "_lazy_init", lambda: None)
    with xpurt.xpu_mapping("CPU"):
        yield


def allocate(size_bytes: int = 512) -> torch.UntypedStorage:
    return torch.UntypedStorage(size_bytes, device="xpu")


def halves() -> dict[str, object]:
    cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
    if cpu.compute_units % 2:
        pytest.skip(f"{cpu.compute_units} compute units have no two equal parts")
    return {"devices": "cpu", "partition": 2}


def test_it_takes_effect_at_once() -> None:
    assert xpurt.get_xpu_mapping() == "CPU"
    assert _C.device_count() == 1
    epoch = _C.placement_epoch()
    xpurt.set_xpu_mapping("Explicit", **halves())
    assert xpurt.get_xpu_mapping() == "explicit"
    assert _C.device_count() == 2
    assert _C.placement_epoch() > epoch
    assert len(mapping.current_placement().ordinals) == 2
    assert allocate().device == torch.device("xpu", 0)


def test_an_ordinal_that_is_not_there() -> None:
    mapping.check_device_index(0)
    with pytest.raises(MappingError) as caught:
        mapping.check_device_index(1)
    assert str(caught.value) == (
        'xpu:1 is out of range: mapping "CPU" has one device, xpu:0'
    )
    xpurt.set_xpu_mapping("explicit", **halves())
    mapping.check_device_index(1)


def test_live_tensors_hold_the_mapping() -> None:
    one, two = allocate(512), allocate(1024)
    with pytest.raises(MappingError) as caught:
        xpurt.set_xpu_mapping("AUTO")
    assert "2 storages hold 1536 bytes" in str(caught.value)
    assert 'from "CPU" to "AUTO"' in str(caught.value)
    assert xpurt.get_xpu_mapping() == "CPU"
    del two
    with pytest.raises(MappingError, match="1 storage holds 512 bytes"):
        xpurt.set_xpu_mapping("AUTO")
    del one
    xpurt.set_xpu_mapping("AUTO")
    assert xpurt.get_xpu_mapping() == "AUTO"


def test_garbage_does_not_hold_the_mapping() -> None:
    gc.disable()
    try:
        ring: list[object] = [allocate()]
        ring.append(ring)
        del ring
        assert _C.live_memory()[0] == 1
        xpurt.set_xpu_mapping("AUTO")
    finally:
        gc.enable()


def test_xpurts_own_tensors_do_not_hold_the_mapping() -> None:
    own = [allocate()]
    undo = mapping.before_change(own.clear)
    try:
        xpurt.set_xpu_mapping("AUTO")
    finally:
        undo()
    own.append(allocate())
    with pytest.raises(MappingError):
        xpurt.set_xpu_mapping("CPU")


def test_the_same_mapping_again_is_nothing() -> None:
    held = allocate()
    epoch = _C.placement_epoch()
    xpurt.set_xpu_mapping("cpu")
    with xpurt.xpu_mapping("CPU"):
        pass
    assert _C.placement_epoch() == epoch
    del held


@pytest.mark.parametrize(
    "arguments",
    [
        {"mapping": "AUT"},
        {"mapping": "explicit", "devices": "hip:gpu:7"},
        {"mapping": "explicit", "partition": 1009},
        {"mapping": "AUTO:-CPU,-GPU,-accelerator"},
    ],
    ids=str,
)
def test_a_failed_change_keeps_the_old_mapping(arguments: dict[str, object]) -> None:
    epoch = _C.placement_epoch()
    with pytest.raises(MappingError):
        xpurt.set_xpu_mapping(**arguments)
    assert xpurt.get_xpu_mapping() == "CPU"
    assert _C.placement_epoch() == epoch
    assert allocate().nbytes() == 512


def test_a_placement_that_cannot_be_installed_keeps_the_old_mapping() -> None:
    real = _C.install_placement

    def refuse_auto(name: str, *rest: Any) -> None:
        if name == "AUTO":
            raise RuntimeError("no context for it")
        real(name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_C, "install_placement", refuse_auto)
        with pytest.raises(MappingError, match="no context for it"):
            xpurt.set_xpu_mapping("AUTO")
    assert xpurt.get_xpu_mapping() == "CPU"
    assert allocate().nbytes() == 512


def test_callbacks_follow_a_change() -> None:
    seen = []
    undo = mapping.on_change(lambda: seen.append(xpurt.get_xpu_mapping()))
    try:
        xpurt.set_xpu_mapping("AUTO")
        xpurt.set_xpu_mapping("AUTO")
        with pytest.raises(MappingError):
            xpurt.set_xpu_mapping("AUT")
        assert seen == ["AUTO"]
    finally:
        undo()
    xpurt.set_xpu_mapping("CPU")
    assert seen == ["AUTO"]


# -- the context manager ---------------------------------------------------------------


def test_a_mapping_for_the_length_of_a_with() -> None:
    with xpurt.xpu_mapping("explicit", **halves()) as placement:
        assert len(placement.ordinals) == 2
        with xpurt.xpu_mapping("AUTO"):
            assert xpurt.get_xpu_mapping() == "AUTO"
        assert _C.device_count() == 2
    assert xpurt.get_xpu_mapping() == "CPU"
    assert _C.device_count() == 1


def test_it_is_restored_after_a_mapping_set_inside() -> None:
    with xpurt.xpu_mapping("AUTO"):
        xpurt.set_xpu_mapping("explicit")
    assert xpurt.get_xpu_mapping() == "CPU"


def test_it_is_restored_after_an_exception() -> None:
    def fail() -> None:
        held = allocate()
        raise KeyError(held.nbytes())

    # The traceback of the exception holds the frame that holds the storage.
    with pytest.raises(KeyError, match="512"), xpurt.xpu_mapping("AUTO"):
        fail()
    assert xpurt.get_xpu_mapping() == "CPU"


def test_an_exception_is_not_hidden_by_tensors_that_live_on() -> None:
    held = []

    def fail() -> None:
        held.append(allocate())
        raise KeyError

    with pytest.raises(KeyError) as caught, xpurt.xpu_mapping("AUTO"):
        fail()
    assert "was not restored" in caught.value.__notes__[0]
    assert xpurt.get_xpu_mapping() == "AUTO"


def test_tensors_that_live_on_are_an_error_at_the_exit() -> None:
    held = []
    refused = pytest.raises(MappingError, match="1 storage holds")
    with refused, xpurt.xpu_mapping("AUTO"):
        held.append(allocate())
    assert xpurt.get_xpu_mapping() == "AUTO"


def test_a_request_that_fails_leaves_nothing_to_restore() -> None:
    with pytest.raises(MappingError), xpurt.xpu_mapping("explicit", devices="hip"):
        pytest.fail("the body ran")
    assert xpurt.get_xpu_mapping() == "CPU"


# -- other circumstances ---------------------------------------------------------------


def test_where_xpurt_is_inactive_the_reason_is_given() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extension, "inactive_reason", lambda: "it has its own XPU")
        with pytest.raises(MappingError, match="it has its own XPU"):
            xpurt.set_xpu_mapping("AUTO")


def test_threads_may_set_it_at_once() -> None:
    failures = []

    def change(name: str) -> None:
        try:
            for _ in range(5):
                xpurt.set_xpu_mapping(name)
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=change, args=(name,)) for name in ("AUTO", "CPU") * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert xpurt.get_xpu_mapping() in ("AUTO", "CPU")


def test_the_environment_sets_the_first_mapping() -> None:
    code = (
        "import torch, xpurt\n"
        "from xpurt import _C\n"
        "print(xpurt.get_xpu_mapping(), _C.placement_epoch(), _C.device_count())"
    )
    assert run(code, XPURT_MAPPING="cpu").stdout.split() == ["CPU", "0", "1"]
    assert run(code, XPURT_MAPPING="").stdout.split() == ["AUTO", "0", "1"]


def test_a_bad_mapping_in_the_environment_raises_at_first_use() -> None:
    code = (
        "import torch, xpurt\n"
        "print(torch.ones(2).sum().item())\n"
        "try:\n"
        "    torch.xpu._lazy_init = lambda: None\n"
        "    torch.UntypedStorage(8, device='xpu')\n"
        "except RuntimeError as error:\n"
        "    print(type(error).__name__, error)\n"
        "xpurt.set_xpu_mapping('CPU')\n"
        "print(torch.UntypedStorage(8, device='xpu').device)"
    )
    done = run(code, XPURT_MAPPING="CPUU")
    assert done.returncode == 0, done.stderr
    first, error, last = done.stdout.splitlines()
    assert first == "2.0"
    assert error.startswith('MappingError XPURT_MAPPING: mapping "CPUU" is unknown')
    assert last == "xpu:0"


def test_restoring_to_before_the_first_mapping() -> None:
    code = (
        "import xpurt\n"
        "from xpurt import _C\n"
        "with xpurt.xpu_mapping('CPU'):\n"
        "    print(xpurt.get_xpu_mapping())\n"
        "print(xpurt.get_xpu_mapping())"
    )
    done = run(code, XPURT_MAPPING="GPU")
    assert done.stdout.split() == ["CPU", "GPU"], done.stderr


def test_a_fork_before_the_first_use_is_free_and_after_it_bound() -> None:
    code = (
        "import os, sys, xpurt\n"
        "def child():\n"
        "    sys.stdout.flush()\n"
        "    if os.fork():\n"
        "        return os.wait()\n"
        "    try:\n"
        "        xpurt.set_xpu_mapping('CPU')\n"
        "        print(xpurt.get_xpu_mapping(), flush=True)\n"
        "    except RuntimeError as error:\n"
        "        print(error, flush=True)\n"
        "    os._exit(0)\n"
        "child()\n"
        "xpurt.physical_devices()\n"
        "child()\n"
    )
    free, bound = run(code, XPURT_MAPPING="").stdout.splitlines()
    assert free == "CPU"
    assert bound.startswith("Cannot re-initialize XPU in forked subprocess")


def test_a_pytorch_with_an_xpu_of_its_own_is_left_alone() -> None:
    code = (
        "import torch\n"
        "torch._C._has_xpu = True\n"
        "import xpurt\n"
        "print(len(xpurt.physical_devices()) > 0)\n"
        "try:\n"
        "    xpurt.set_xpu_mapping('CPU')\n"
        "except xpurt.XpurtError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0", XPURT_MAPPING="")
    assert done.returncode == 0, done.stderr
    devices, error = done.stdout.splitlines()
    assert devices == "True"
    assert error.startswith("MappingError")
    assert "has XPU compiled in" in error
