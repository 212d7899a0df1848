"""Reading ``__sycl_usm_array_interface__``, by which dpctl and dpnp describe arrays.

Foreign code fills it in, so each part is checked before any memory is read.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import torch

from xpurt.arguments import shown, wrong_type
from xpurt.mapping import queue_from_capsule

INTERFACE = "__sycl_usm_array_interface__"

# Type strings of numpy's array interface; bfloat16 has none.
TYPES = {
    torch.bool: "|b1",
    torch.uint8: "|u1",
    torch.int8: "|i1",
    torch.uint16: "<u2",
    torch.int16: "<i2",
    torch.uint32: "<u4",
    torch.int32: "<i4",
    torch.uint64: "<u8",
    torch.int64: "<i8",
    torch.float16: "<f2",
    torch.float32: "<f4",
    torch.float64: "<f8",
    torch.complex64: "<c8",
    torch.complex128: "<c16",
}
# The first character is the byte order. Some write "|" for this machine's order: the
# table below is without it.
_DTYPES = {text[1:]: dtype for dtype, text in TYPES.items()}

_REMEDY = "Give an array of dpnp, or a USM memory object of dpctl."


class UsmArray(NamedTuple):
    """address: of the first element. strides: in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    syclobj: Any


def read_interface(array: Any) -> UsmArray:
    """The description of the array. Raises TypeError if it has no such interface, or
    one with parts of wrong types, and ValueError for impossible numbers."""
    interface = getattr(array, INTERFACE, None)
    if not isinstance(interface, Mapping):
        found = array if interface is None else interface
        raise wrong_type("from_usm()", f"an object with {INTERFACE}", found, _REMEDY)
    dtype = _dtype(interface)
    shape = _whole_numbers("shape", interface.get("shape"))
    if any(length < 0 for length in shape):
        raise _wrong("shape", "lengths of 0 or more", shape)
    strides = interface.get("strides")
    strides = (
        _contiguous(shape) if strides is None else _whole_numbers("strides", strides)
    )
    if len(strides) != len(shape):
        raise _wrong(
            "strides", f"{len(shape)} strides, one for each dimension", strides
        )
    if any(stride < 0 for stride in strides):
        raise ValueError("PyTorch has no negative strides: copy the array first")
    offset = interface.get("offset", 0)
    if not _is_whole(offset):
        raise _wrong_part("offset", "a number of elements", offset)
    address = _address(interface.get("data")) + offset * dtype.itemsize
    if not 0 <= address < 1 << 64:
        raise _wrong("data", "the address of memory", address)
    return UsmArray(address, shape, strides, dtype, _syclobj(interface.get("syclobj")))


def _syclobj(found: Any) -> Any:
    """Checks the object that stands for a queue or a context. An object of any other
    kind could hide a queue, and its work could not be waited for."""
    if type(found).__name__ == "PyCapsule":
        with suppress(TypeError, ValueError):  # a context's
            return queue_from_capsule(found)
        return found
    attributes = ("wait", "sycl_context", "addressof_ref")
    if found is None or isinstance(found, str):
        return found
    if not any(hasattr(found, name) for name in attributes):
        raise _wrong_part("syclobj", "a queue, a context or a filter string", found)
    return found


def _dtype(interface: Mapping[str, Any]) -> torch.dtype:
    text = interface.get("typestr")
    if not isinstance(text, str):
        raise _wrong_part("typestr", 'a text such as "<f4"', text)
    dtype = _DTYPES.get(text[1:])
    if dtype is None or text[0] not in "|<=":
        raise TypeError(
            f"from_usm() wants a type that PyTorch has; found typestr {text!r}, which is "
            f"none of {', '.join(TYPES.values())}. Convert the array first."
        )
    return dtype


def _address(data: Any) -> int:
    if not isinstance(data, tuple | list) or not data or not _is_whole(data[0]):
        raise _wrong_part("data", "(address, whether it is read-only)", data)
    return int(data[0])


def _whole_numbers(part: str, found: Any) -> tuple[int, ...]:
    if not isinstance(found, tuple | list) or not all(_is_whole(n) for n in found):
        raise _wrong_part(part, "whole numbers", found)
    return tuple(int(n) for n in found)


def _is_whole(found: Any) -> bool:
    return hasattr(found, "__index__") and not isinstance(found, bool)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def _wrong_part(part: str, wanted: str, found: Any) -> TypeError:
    return wrong_type(f'from_usm(): the interface\'s "{part}"', wanted, found, _REMEDY)


def _wrong(part: str, wanted: str, found: Any) -> ValueError:
    return ValueError(
        f'from_usm(): the interface\'s "{part}" is to be {wanted}; found {shown(found)}. '
        f"{_REMEDY}"
    )
