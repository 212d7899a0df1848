"""Memory that is seen from two sides: CPU and xpu, xpurt and other SYCL libraries.

``torch.from_dlpack`` and ``tensor.__dlpack__()`` take xpu tensors as device type
kDLOneAPI by themselves. The other protocol of SYCL in Python,
``__sycl_usm_array_interface__`` (dpctl's, since 2020), is added below.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

import torch
import torch.utils.dlpack

from xpurt import _C, streams
from xpurt.mapping import current_placement

Module = TypeVar("Module", bound=torch.nn.Module)


@overload
def share(
    shared: torch.Tensor, device: torch.device | str | None = None
) -> torch.Tensor: ...
@overload
def share(shared: Module, device: torch.device | str | None = None) -> Module: ...
def share(
    shared: torch.Tensor | Module, device: torch.device | str | None = None
) -> torch.Tensor | Module:
    """The same bytes on the other side, in O(1): an xpu tensor as a CPU tensor, or a
    CPU tensor as an xpu tensor; or a module that goes there, without a second copy.

    shared: a dense tensor of any shape, strides and dtype; the result has the same
        ones, and no gradient. Or a module, which is changed in place, as by
        ``Module.to``, and returned: each parameter, with its gradient, and each buffer
        becomes what its tensor would. A module goes to xpu if it has a tensor on the
        CPU, else to the CPU; tensors that are there already stay what they are. Make
        its optimizer afterwards.
    device: of the result for what is on the CPU; by default the current xpu device.

    Writes on one side are seen on the other once the work is done: a CPU tensor that
    was shared from xpu may be read after ``torch.xpu.synchronize()``; sharing itself
    waits for what was submitted before. Either tensor keeps the bytes alive, and
    neither can be resized any more. So the tensors that somebody kept of a module on
    the CPU, a state_dict for one, follow as it trains on xpu.

    Raises TypeError for a sparse or quantized tensor, before anything of a module has
    changed, and RuntimeError where host and device cannot read each other's memory.
    """
    if isinstance(shared, torch.nn.Module):
        return _share_module(shared, device)
    return _share_tensor(shared, device)


def _share_module(module: Module, device: torch.device | str | None) -> Module:
    tensors = [*module.parameters(), *module.buffers()]
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise TypeError(
                "a module of dense tensors can be shared; this one has a tensor of "
                f"layout {tensor.layout}, {tensor.dtype}"
            )
    source = "cpu" if any(t.device.type == "cpu" for t in tensors) else "xpu"
    # A tensor that several modules have comes by more than once.
    module._apply(  # type: ignore[no-untyped-call]
        lambda tensor: (
            _share_tensor(tensor, device) if tensor.device.type == source else tensor
        )
    )
    return module


def _share_tensor(
    tensor: torch.Tensor, device: torch.device | str | None
) -> torch.Tensor:
    if tensor.device.type == "xpu":
        return _C.share_with_cpu(tensor.detach())
    if tensor.device.type != "cpu":
        raise TypeError(
            f"a CPU or xpu tensor can be shared; this is on {tensor.device}"
        )
    target = torch.device("xpu" if device is None else device)
    if target.type != "xpu":
        raise ValueError(f"a CPU tensor is shared with an xpu device, not {target}")
    index = torch.xpu.current_device() if target.index is None else target.index
    return _C.share_with_xpu(tensor.detach(), index)


def where(tensor: torch.Tensor) -> tuple[str, ...]:
    """The physical devices that hold a valid copy of an xpu tensor: SYCL filter
    strings, as `xpurt.physical_devices()` has them.

    Under AUTO that can be several, and changes with every op. Raises TypeError for a
    tensor that is not on xpu.
    """
    if tensor.device.type != "xpu":
        raise TypeError(
            f"where() asks about xpu tensors; this one is on {tensor.device}"
        )
    devices = current_placement().ordinals[tensor.device.index or 0]
    return tuple(devices[p].filter_string for p in _C.positions_of(tensor))


_INTERFACE = "__sycl_usm_array_interface__"


@runtime_checkable
class Waits(Protocol):
    """A queue, among what the interface may name: queues, contexts, strings."""

    def wait(self) -> None: ...


# Type strings of numpy's array interface; bfloat16 has none.
_TYPES = {
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
# Some write "|" for "in this machine's byte order", which is the only one here.
_DTYPES = {text[1:]: dtype for dtype, text in _TYPES.items()}


def usm_interface(tensor: torch.Tensor) -> dict[str, Any]:
    """`tensor.__sycl_usm_array_interface__`: what dpctl and dpnp take xpu tensors by.

    The tensor's pending work is waited for. AttributeError for a tensor that has no
    such form, as the protocol wants it.
    """
    if tensor.device.type != "xpu" or tensor.dtype not in _TYPES:
        raise AttributeError(_INTERFACE)
    _C.never_copy_lazily(tensor)
    _C.escape(tensor)  # also where nothing is wrapped: see xpurt.escapes
    stream = torch.xpu.current_stream(tensor.device)
    stream.synchronize()
    return {
        "version": 1,
        "data": (tensor.data_ptr(), False),
        "shape": tuple(tensor.shape),
        "strides": tuple(tensor.stride()),
        "typestr": _TYPES[tensor.dtype],
        "offset": 0,
        "syclobj": streams.sycl_queue(stream),
    }


def install_usm_interface() -> Callable[[], None]:
    """Gives tensors the attribute ``__sycl_usm_array_interface__``: `hasattr` is true
    for those on xpu. And `torch.from_dlpack` takes arrays that have it, and
    tensors without elements: see `_from_dlpack` and `_convert_dlpack`. Returns what
    undoes this.
    """
    setattr(torch.Tensor, _INTERFACE, property(usm_interface))
    converter = torch._C._from_dlpack
    vars(torch._C)["_from_dlpack"] = _convert_dlpack(converter)
    original = torch.utils.dlpack.from_dlpack
    _set_from_dlpack(functools.wraps(original)(_from_dlpack(original)))

    def undo() -> None:
        delattr(torch.Tensor, _INTERFACE)
        vars(torch._C)["_from_dlpack"] = converter
        _set_from_dlpack(original)

    return undo


def _set_from_dlpack(function: Callable[..., torch.Tensor]) -> None:
    vars(torch)["from_dlpack"] = function
    vars(torch.utils.dlpack)["from_dlpack"] = function


def _from_dlpack(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`torch.from_dlpack` that takes arrays of dpnp and dpctl by `from_usm`.

    Their capsule names no queue, so nobody could wait for the work that still writes
    to the array; the interface does.
    """

    def from_dlpack(
        ext_tensor: Any, *, device: Any = None, copy: bool | None = None
    ) -> torch.Tensor:
        foreign = not isinstance(ext_tensor, torch.Tensor)
        if not foreign or not hasattr(ext_tensor, _INTERFACE):
            return original(ext_tensor, device=device, copy=copy)
        tensor = from_usm(ext_tensor)
        wanted = tensor.device if device is None else torch.device(device)
        if wanted.type == "xpu" and wanted.index is None:
            wanted = torch.device("xpu", torch.xpu.current_device())
        if copy is False and wanted != tensor.device:
            raise ValueError(
                f"the array is on {tensor.device}: on {wanted} it would be a copy, "
                "which copy=False forbids"
            )
        return tensor.to(wanted, copy=bool(copy))

    return from_dlpack


def _convert_dlpack(
    original: Callable[..., torch.Tensor],
) -> Callable[..., torch.Tensor]:
    """`torch._C._from_dlpack` that takes empty xpu tensors: see `empty_from_dlpack`."""

    def convert(capsule: Any) -> torch.Tensor:
        empty = _C.empty_from_dlpack(capsule)
        return original(capsule) if empty is None else empty

    return convert


def from_usm(array: Any) -> torch.Tensor:
    """An object with ``__sycl_usm_array_interface__`` (of dpctl or dpnp) as an xpu
    tensor on the same memory, which the tensor keeps alive. Waits for the queue that
    the object names.

    Raises TypeError if it has no such interface or a dtype that PyTorch lacks, and
    ValueError if its memory belongs to no device behind an xpu ordinal, or ends before
    the array does (which OpenCL drivers tell).
    """
    try:
        interface = array.__sycl_usm_array_interface__
    except AttributeError:
        raise TypeError(
            f"{type(array).__name__} has no __sycl_usm_array_interface__; give an array "
            "of dpnp or a USM memory object of dpctl"
        ) from None
    order, kind = interface["typestr"][:1], interface["typestr"][1:]
    dtype = _DTYPES.get(kind)
    if dtype is None or order not in "|<=":
        raise TypeError(f"PyTorch has no dtype for {interface['typestr']!r}")
    shape = tuple(interface["shape"])
    address = interface["data"][0] + interface.get("offset", 0) * dtype.itemsize
    strides = interface.get("strides") or _contiguous(shape)
    if any(stride < 0 for stride in strides):
        raise ValueError("PyTorch has no negative strides: copy the array first")
    context = _context(interface.get("syclobj"))  # kept until its address was read
    index = _C.ordinal_of_usm(
        address, 0 if context is None else context.addressof_ref()
    )
    if index < 0:
        raise ValueError(
            f"the memory at {address:#x} is not USM of a device behind an xpu ordinal "
            f'(mapping "{current_placement().mapping}"). Allocate it on such a device, '
            "in its platform's default context, or copy it through the host."
        )
    if isinstance(queue := interface.get("syclobj"), Waits):
        queue.wait()
    return _C.around_usm(address, shape, strides, dtype, index, array)


def _context(syclobj: Any) -> Any:
    """The context that the interface names, by itself or by a queue; or None."""
    context = getattr(syclobj, "sycl_context", syclobj)
    return context if hasattr(context, "addressof_ref") else None


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))
