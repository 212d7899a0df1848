"""Pointers that no xpu ordinal can use."""

import gc

import dpctl
import dpctl.memory
import numpy as np
import pytest
import torch

import xpurt
from xpurt import _C


class Array:
    """An object that claims to be an array in USM."""

    def __init__(self, **changes: object) -> None:
        self.__sycl_usm_array_interface__ = {
            "version": 1,
            "data": (0x1000, False),
            "shape": (4,),
            "strides": None,
            "typestr": "<f4",
            "syclobj": None,
            **changes,
        }


def gpu() -> dpctl.SyclDevice:
    found = [d for d in xpurt.physical_devices() if d.kind == "gpu"]
    if not found:
        pytest.skip("there is no GPU")
    return found[0].sycl_device


def refused(array: object) -> None:
    before = _C.live_memory()
    with pytest.raises(ValueError, match="is not USM of a device behind an xpu") as e:
        xpurt.from_usm(array)
    assert f'mapping "{xpurt.get_xpu_mapping()}"' in str(e.value)
    assert "copy it through the host" in str(e.value)
    assert _C.live_memory() == before


@pytest.mark.usefixtures("xpu")
def test_memory_that_is_not_usm() -> None:
    refused(Array())
    plain = np.ones(4, np.float32)
    refused(Array(data=(plain.ctypes.data, False)))


def test_memory_of_a_device_outside_of_the_mapping() -> None:
    queue = dpctl.SyclQueue(gpu())
    with xpurt.xpu_mapping("CPU"):
        refused(dpctl.memory.MemoryUSMDevice(64, queue=queue))


def test_memory_of_another_context() -> None:
    device = gpu()
    queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)  # of its own
    with xpurt.xpu_mapping("GPU"):
        refused(dpctl.memory.MemoryUSMDevice(64, queue=queue))
        ours = dpctl.memory.MemoryUSMDevice(64, queue=dpctl.SyclQueue(device))
        tensor = xpurt.from_usm(ours)
        assert tensor.device == torch.device("xpu", 0)
        del tensor


def test_what_is_refused_is_not_kept(xpu: torch.device) -> None:
    before = _C.live_memory()
    kept = torch.ones(3, device=xpu)
    array = Array(data=(kept.data_ptr(), False), shape=(1 << 40,))
    array.kept = kept  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="do not belong to its memory"):
        xpurt.from_usm(array)
    del kept, array
    gc.collect()
    assert _C.live_memory() == before


@pytest.mark.usefixtures("xpu")
def test_what_has_no_usm_at_all() -> None:
    with pytest.raises(TypeError, match="with __sycl_usm_array_interface__; found"):
        xpurt.from_usm(np.ones(3))
    with pytest.raises(TypeError, match="a type that PyTorch has; found typestr '<V7'"):
        xpurt.from_usm(Array(typestr="<V7"))


@pytest.mark.usefixtures("xpu")
def test_foreign_memory_through_dlpack() -> None:
    class Pointer:
        """A tensor's capsule, with the address of foreign memory in it."""

        def __init__(self) -> None:
            self.plain = np.ones(4, np.float32)
            self.tensor = torch.ones(4, device="xpu")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (14, 0)

        def __dlpack__(self, **_: object) -> object:
            import ctypes

            capsule = torch.utils.dlpack.to_dlpack(self.tensor)
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype = ctypes.c_void_p
            get.argtypes = [ctypes.py_object, ctypes.c_char_p]
            name = b"dltensor"
            managed = ctypes.c_void_p.from_address(get(capsule, name))
            managed.value = self.plain.ctypes.data
            return capsule

    pointer = Pointer()
    with pytest.raises(ValueError, match=r"xpurt\.from_usm"):
        torch.from_dlpack(pointer)
    assert pointer.tensor.tolist() == [1, 1, 1, 1]
