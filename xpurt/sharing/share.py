"""Memory shared by two sides: CPU and xpu, xpurt and other SYCL libraries.

``torch.from_dlpack`` and ``tensor.__dlpack__()`` support xpu tensors without xpurt, as
device type kDLOneAPI. The other protocol of SYCL in Python,
``__sycl_usm_array_interface__`` (dpctl's, since 2020), is added below.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

import torch
import torch.utils.dlpack

from xpurt import _C, streams
from xpurt.arguments import shown, wrong_type
from xpurt.mapping import current_placement
from xpurt.sharing.usm_arrays import INTERFACE, TYPES, read_interface

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
    CPU tensor as an xpu tensor; or a module on the other side, without a second copy.

    shared: a dense tensor of any shape, strides and dtype; the result has the same
        ones, and no gradient. Or a module, which is changed in place, as by
        ``Module.to``, and returned: each parameter, with its gradient, and each buffer
        is replaced as a tensor would be. A module goes to xpu if it has a tensor on the
        CPU, else to the CPU; tensors that are there already are not changed. Make its
        optimizer afterwards.
    device: the xpu device for a CPU tensor or module; by default the current one. An
        xpu tensor or module goes to the CPU; "cpu" is the only device allowed for it.

    Writes on one side are visible on the other once the work is done: a CPU tensor that
    was shared from xpu may be read after ``torch.xpu.synchronize()``; sharing itself
    waits for work submitted before. Either tensor keeps the bytes alive, and neither
    can be resized any more. So references to a module's CPU tensors, in a state_dict
    for example, see the values as it trains on xpu.

    Raises TypeError for anything but such a tensor or a module, a sparse or quantized
    tensor for example, before anything of a module has changed. Raises ValueError for a
    device that it cannot go to, and RuntimeError if host and device cannot read each
    other's memory.
    """
    target = _target(device)
    if isinstance(shared, torch.nn.Module):
        return _share_module(shared, target)
    if not isinstance(shared, torch.Tensor):
        raise wrong_type(
            "share()",
            "a tensor or a module",
            shared,
            "Share each tensor by itself, and make one of numbers by torch.tensor().",
        )
    return _share_tensor(shared, target)


def _target(device: torch.device | str | None) -> torch.device | None:
    if device is None or isinstance(device, torch.device):
        return device
    if isinstance(device, bool) or not isinstance(device, str | int):
        raise wrong_type(
            "share(device=)", "an xpu device", device, 'Give "xpu", "xpu:1" or nothing.'
        )
    try:
        return torch.device(device)
    except RuntimeError:
        raise ValueError(
            f'share(device=) wants an xpu device; found {shown(device)}. Give "xpu", '
            '"xpu:1" or nothing.'
        ) from None


def _check_goes_to_cpu(what: str, target: torch.device | None) -> None:
    """Raises ValueError unless the target of an xpu tensor or module is the CPU."""
    if target is not None and target.type != "cpu":
        raise ValueError(
            f"share() shows what is on xpu to the CPU; found a {what} on xpu and "
            f'device="{target}". Leave the device out, or copy it by .to("{target}").'
        )


def _share_module(module: Module, device: torch.device | None) -> Module:
    tensors = [*module.parameters(), *module.buffers()]
    for tensor in tensors:
        _check_is_there(tensor)
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise TypeError(
                "a module of dense tensors can be shared; this one has a tensor of "
                f"layout {tensor.layout}, {tensor.dtype}"
            )
    source = "cpu" if any(t.device.type == "cpu" for t in tensors) else "xpu"
    if source == "xpu" and tensors:
        _check_goes_to_cpu("module", device)
    else:
        _index_of(device)
    # A tensor that several modules share occurs more than once.
    module._apply(  # type: ignore[no-untyped-call]
        lambda tensor: (
            _share_tensor(tensor, device) if tensor.device.type == source else tensor
        )
    )
    return module


def _share_tensor(tensor: torch.Tensor, device: torch.device | None) -> torch.Tensor:
    _check_is_there(tensor)
    if tensor.device.type == "xpu":
        _check_goes_to_cpu("tensor", device)
        return _C.share_with_cpu(tensor.detach())
    return _C.share_with_xpu(tensor.detach(), _index_of(device))


def _check_is_there(tensor: torch.Tensor) -> None:
    if tensor.device.type not in ("cpu", "xpu"):
        raise TypeError(
            f"a CPU or xpu tensor can be shared; this is on {tensor.device}. Copy it to "
            'one of them first, as by .to("cpu").'
        )


def _index_of(device: torch.device | None) -> int:
    """The ordinal that a CPU tensor goes to."""
    target = torch.device("xpu") if device is None else device
    if target.type != "xpu":
        raise ValueError(
            f"a CPU tensor is shared with an xpu device, not {target}. Give "
            'device="xpu", or none.'
        )
    return torch.xpu.current_device() if target.index is None else target.index


def where(tensor: torch.Tensor) -> tuple[str, ...]:
    """The physical devices that hold a valid copy of an xpu tensor: SYCL filter
    strings, as in `xpurt.physical_devices()`.

    Under AUTO there can be several, and they can change with every op. Raises TypeError
    for a tensor that is not on xpu.
    """
    if not isinstance(tensor, torch.Tensor):
        raise wrong_type(
            "where()", "an xpu tensor", tensor, "Ask for a model's tensors."
        )
    if tensor.device.type != "xpu":
        raise TypeError(
            f"where() asks about xpu tensors; this one is on {tensor.device}. Move it by "
            '.to("xpu") first.'
        )
    if tensor.layout != torch.strided:
        raise TypeError(
            "where() asks about dense tensors; this one has the layout "
            f"{tensor.layout}. Ask for its parts, as for tensor.values()."
        )
    devices = current_placement().ordinals[tensor.device.index or 0]
    return tuple(devices[p].filter_string for p in _C.positions_of(tensor))


@runtime_checkable
class Waits(Protocol):
    """A queue. The interface may name a queue, a context or a string."""

    def wait(self) -> None: ...


def usm_interface(tensor: torch.Tensor) -> dict[str, Any]:
    """`tensor.__sycl_usm_array_interface__`, by which dpctl and dpnp take xpu tensors.

    Waits for the tensor's pending work. Raises AttributeError for a tensor without such
    a form, as the protocol requires.
    """
    if tensor.device.type != "xpu" or tensor.dtype not in TYPES:
        raise AttributeError(INTERFACE)
    _C.never_copy_lazily(tensor)
    _C.escape(tensor)  # also without guards: see xpurt.sharing.raw_pointer_guards
    stream = torch.xpu.current_stream(tensor.device)
    stream.synchronize()
    return {
        "version": 1,
        "data": (tensor.data_ptr(), False),
        "shape": tuple(tensor.shape),
        "strides": tuple(tensor.stride()),
        "typestr": TYPES[tensor.dtype],
        "offset": 0,
        "syclobj": streams.sycl_queue(stream),
    }


def install_usm_interface() -> Callable[[], None]:
    """Gives tensors the attribute ``__sycl_usm_array_interface__``; `hasattr` is true
    for those on xpu. Makes `torch.from_dlpack` accept arrays with this attribute, and
    tensors without elements: see `_from_dlpack` and `_convert_dlpack`. Returns a
    function that undoes this.
    """
    setattr(torch.Tensor, INTERFACE, property(usm_interface))
    converter = torch._C._from_dlpack
    vars(torch._C)["_from_dlpack"] = _convert_dlpack(converter)
    original = torch.utils.dlpack.from_dlpack
    _set_from_dlpack(functools.wraps(original)(_from_dlpack(original)))

    def undo() -> None:
        delattr(torch.Tensor, INTERFACE)
        vars(torch._C)["_from_dlpack"] = converter
        _set_from_dlpack(original)

    return undo


def _set_from_dlpack(function: Callable[..., torch.Tensor]) -> None:
    vars(torch)["from_dlpack"] = function
    vars(torch.utils.dlpack)["from_dlpack"] = function


def _from_dlpack(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`torch.from_dlpack` that takes arrays of dpnp and dpctl by `from_usm`.

    Their DLPack capsule names no queue, so work that still writes to the array could
    not be waited for. The interface names the queue.
    """

    def from_dlpack(
        ext_tensor: Any, *, device: Any = None, copy: bool | None = None
    ) -> torch.Tensor:
        foreign = not isinstance(ext_tensor, torch.Tensor)
        if not foreign or not hasattr(ext_tensor, INTERFACE):
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

    Raises TypeError if it has no such interface, one with parts of wrong types, or a
    dtype that PyTorch lacks. Raises ValueError if its strides do not match its shape,
    if its memory belongs to no device behind an xpu ordinal, or if its memory ends
    before the array does (which OpenCL drivers report).
    """
    found = read_interface(array)
    address = found.address
    context = _context(found.syclobj)  # kept until its address was read
    index = _C.ordinal_of_usm(
        address, 0 if context is None else context.addressof_ref()
    )
    if index < 0:
        raise ValueError(
            f"the memory at {address:#x} is not USM of a device behind an xpu ordinal "
            f'(mapping "{current_placement().mapping}"). Allocate it on such a device, '
            "in its platform's default context, or copy it through the host."
        )
    if isinstance(found.syclobj, Waits):
        found.syclobj.wait()
    return _C.around_usm(address, found.shape, found.strides, found.dtype, index, array)


def _context(syclobj: Any) -> Any:
    """The context that the interface names, directly or by a queue; or None."""
    context = getattr(syclobj, "sycl_context", syclobj)
    return context if hasattr(context, "addressof_ref") else None
