"""The ways to the address of a tensor's memory: the bytes there are valid, and stay so.

`ROADS` has all of them in Python. C++ code that calls `data_ptr<T>()` outside of an op is
not covered.
"""

import ctypes
import re
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.utils.dlpack

import xpurt
from auto.choices import Choices
from xpurt import _C

Tensor = torch.Tensor

pytestmark = pytest.mark.usefixtures("own_stream")

# Looked up before any guard exists.
EARLY = torch._C.TensorBase.data_ptr
EARLY_OF_STORAGE = torch._C.StorageBase.data_ptr
EARLY_CAPSULE = torch.utils.dlpack.to_dlpack


class Subclass(torch.Tensor):
    pass


class Exchange(ctypes.Structure):
    """DLPack's table of functions."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("managed", ctypes.c_void_p),
        ("made", ctypes.c_void_p),
        ("unmanaged", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


def pointer_in(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = get(capsule, name)
    assert isinstance(found, int)
    return found


def first_word(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def in_versioned(address: int) -> int:
    """The data of a DLManagedTensorVersioned: version, context, deleter and flags come
    before it."""
    return first_word(address + 32)


def in_capsule(capsule: object) -> int:
    return first_word(pointer_in(capsule, b"dltensor"))


def in_versioned_capsule(capsule: object) -> int:
    return in_versioned(pointer_in(capsule, b"dltensor_versioned"))


def exchange(owner: type[torch.Tensor]) -> Exchange:
    capsule = owner.__dlpack_c_exchange_api__
    return Exchange.from_address(pointer_in(capsule, b"dlpack_exchange_api"))


TABLE = exchange(torch.Tensor)
READ_ONLY = getattr(torch.utils.dlpack, "ReadOnlyTensorWrapper", None)  # from 2.14 on


def by_exchange(x: Tensor, table: Exchange = TABLE) -> int:
    room = ctypes.create_string_buffer(256)
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    address = ctypes.addressof(room)
    assert function(table.unmanaged)(x, address) == 0
    return first_word(address)


def by_managed_exchange(x: Tensor, table: Exchange = TABLE) -> int:
    made = ctypes.c_void_p()
    function = ctypes.PYFUNCTYPE(
        ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p)
    )
    assert function(table.managed)(x, ctypes.byref(made)) == 0
    assert made.value is not None
    found = in_versioned(made.value)
    # Its third word is the function that releases it.
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(first_word(made.value + 16))(made.value)
    return found


def typed(x: Tensor) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x.storage().data_ptr()


# Each returns the address of the first element of a tensor that is not a view.
ROADS: dict[str, Callable[[Tensor], int]] = {
    "data_ptr": lambda x: x.data_ptr(),
    "const_data_ptr": lambda x: x.const_data_ptr(),
    "data_ptr of the class": lambda x: torch.Tensor.data_ptr(x),
    "data_ptr of the base": lambda x: torch._C.TensorBase.data_ptr(x),
    "const_data_ptr of the base": lambda x: torch._C.TensorBase.const_data_ptr(x),
    "taken before": lambda x: EARLY(x),
    "by super": lambda x: super(torch.Tensor, x).data_ptr(),
    "by __dict__": lambda x: vars(torch._C.TensorBase)["data_ptr"].__get__(x)(),
    "by a view": lambda x: x[3:].data_ptr() - 12,
    "by detach": lambda x: x.detach().data_ptr(),
    "by a subclass": lambda x: x.as_subclass(Subclass).data_ptr(),
    "by a parameter": lambda x: torch.nn.Parameter(x).data_ptr(),
    "storage": lambda x: x.untyped_storage().data_ptr(),
    "storage of the base": lambda x: torch._C.StorageBase.data_ptr(x.untyped_storage()),
    "storage, taken before": lambda x: EARLY_OF_STORAGE(x.untyped_storage()),
    "storage inside": lambda x: x.untyped_storage()[8:].data_ptr() - 8,
    "typed storage": typed,
    "typed storage, _data_ptr": lambda x: x._typed_storage()._data_ptr(),
    "_data_address": lambda x: torch._C._data_address(x),
    "to_dlpack": lambda x: in_capsule(torch.utils.dlpack.to_dlpack(x)),
    "to_dlpack, taken before": lambda x: in_capsule(EARLY_CAPSULE(x)),
    "__dlpack__": lambda x: in_capsule(x.__dlpack__()),
    "__dlpack__ with a version": lambda x: in_versioned_capsule(
        x.__dlpack__(max_version=(1, 0))
    ),
    "from_dlpack": lambda x: torch.from_dlpack(x).data_ptr(),
    "exchange in C": by_exchange,
    "exchange in C, managed": by_managed_exchange,
    "usm": lambda x: x.__sycl_usm_array_interface__["data"][0],
    "share": lambda x: xpurt.share(x).data_ptr(),
    "numpy": lambda x: xpurt.share(x).numpy().ctypes.data,
}


if READ_ONLY is not None:
    READ_ONLY_TABLE = exchange(READ_ONLY)
    ROADS |= {
        "read-only": lambda x: in_versioned_capsule(READ_ONLY(x).__dlpack__()),
        "read-only, in C": lambda x: by_exchange(READ_ONLY(x), READ_ONLY_TABLE),
        "read-only, in C, managed": lambda x: by_managed_exchange(
            READ_ONLY(x), READ_ONLY_TABLE
        ),
    }


def value_at(address: int) -> float:
    return float(ctypes.c_float.from_address(address).value)


@pytest.mark.parametrize("road", ROADS)
def test_the_bytes_at_an_address_are_valid(choices: Choices, road: str) -> None:
    x = torch.zeros(1000, device="xpu")
    torch.xpu.synchronize()
    choices.gpu()
    x.add_(1)
    address = ROADS[road](x)
    assert value_at(address) == 1.0
    choices.gpu()
    x.add_(1)
    torch.xpu.synchronize()
    assert value_at(address) == 2.0
    ctypes.c_float.from_address(address).value = 7.0
    choices.gpu()
    assert (x + 1)[0].item() == 8.0


# What may look like a road and is none: no result is the address of a tensor's bytes.
NO_ROADS = {
    "TensorBase._cdata": "address of the tensor object",
    "UntypedStorage._cdata": "address of the storage object",
    "UntypedStorage._set_cdata": "takes an address of a storage object",
    "UntypedStorage._new_with_weak_ptr": "takes an address of a storage object",
    "UntypedStorage._swap_data_ptr_": "exchanges the memory of two storages",
    "Tensor.__cuda_array_interface__": "raises for xpu",
    "Tensor.__dlpack__": "calls _to_dlpack_versioned or _to_dlpack",
    "Tensor.__dlpack_device__": "a kind of device",
    "_storage_address": "address of the storage object",
    "_from_dlpack": "takes a capsule",
    "_crash_if_vptr_ubsan": "takes nothing",
    "_clear_storage_data_ptr_access_error_msg": "a mark of a storage",
    "_set_storage_data_ptr_access_error_msg": "a mark of a storage",
    "_set_throw_on_mutable_data_ptr": "a mark of a tensor",
    "_set_warn_deprecated_on_mutable_data_ptr": "a mark of a tensor",
    "_storage_throw_on_immutable_data_ptr": "a mark of a storage",
    "_storage_throw_on_mutable_data_ptr": "a mark of a storage",
    "_tensors_data_ptrs_at_indices_equal": "compares addresses",
}
COVERED = {
    "TensorBase.data_ptr",
    "TensorBase.const_data_ptr",
    "UntypedStorage.data_ptr",
    "Tensor.__dlpack_c_exchange_api__",
    "Tensor.__sycl_usm_array_interface__",
    "_data_address",
    "_const_dlpack_exchange_api",
    "_dlpack_exchange_api",
    "_to_dlpack",
    "_to_dlpack_versioned",
}


def test_every_name_that_may_be_a_road_is_known() -> None:
    """A new version of PyTorch may bring another."""
    pattern = re.compile("ptr|address|dlpack|_interface__|cdata", re.IGNORECASE)
    owners = (torch.Tensor, torch._C.TensorBase, torch.UntypedStorage)
    found = {name for name in dir(torch._C) if pattern.search(name)}
    found -= {name for name in found if name.startswith(("_cuda", "_mps"))}
    for owner in owners:
        found |= {
            f"{owner.__name__}.{name}"
            for name in (dir(owner) if owner is torch.UntypedStorage else vars(owner))
            if pattern.search(name)
        }
    assert found - COVERED - set(NO_ROADS) == set()


def test_guards_leave_with_the_mapping(choices: Choices) -> None:
    """The functions are PyTorch's own where one device is behind an ordinal."""
    method = ctypes.c_void_p.from_address(method_address())
    guarded = method.value
    x = torch.arange(3.0)
    assert x.data_ptr() == torch._C.TensorBase.data_ptr(x) == torch._C._data_address(x)
    _C.guard_raw_pointers(False, False)
    try:
        assert method.value != guarded
        assert x.data_ptr() == torch._C.TensorBase.data_ptr(x)
    finally:
        _C.guard_raw_pointers(True, False)
    assert method.value == guarded
    assert torch._C.TensorBase.data_ptr is EARLY


def method_address() -> int:
    """Where the C function of TensorBase.data_ptr is noted."""
    descriptor = id(vars(torch._C.TensorBase)["data_ptr"])
    # PyMethodDescrObject: two words of the object, type, name, qualified name; then the
    # PyMethodDef: name, function.
    method = first_word(descriptor + 5 * 8)
    return method + 8


@pytest.mark.parametrize("wrong", [None, 3, "x"])
def test_wrong_subjects_raise_as_before(choices: Choices, wrong: object) -> None:
    with pytest.raises(TypeError):
        torch._C.TensorBase.data_ptr(wrong)
    with pytest.raises((TypeError, RuntimeError)):
        torch._C._to_dlpack(wrong)
    with pytest.raises(TypeError):
        torch._C._data_address(wrong)


def test_tensors_without_memory_have_no_address(choices: Choices) -> None:
    assert torch.empty(0, device="xpu").data_ptr() == 0
    assert torch.empty(3, device="meta").data_ptr() == 0
    sparse = torch.eye(3, device="xpu").to_sparse()
    with pytest.raises((RuntimeError, NotImplementedError)):
        sparse.data_ptr()
