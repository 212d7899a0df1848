"""DLPack for tensors of prototype devices.

Note [DLPack of prototypes]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
DLPack has codes for few of the device types. PyTorch's C++ knows kDLMAIA for maia, and
kDLExtDev for PrivateUse1; its `Tensor.__dlpack_device__` knows neither, and mtia's capsules
would come back as PrivateUse1. So a tensor's DLPack device is
- with memory="xpu": that of xpu:i, kDLOneAPI;
- on maia and PrivateUse1 with other memory: PyTorch's code;
- on other types: that of the memory, kDLCPU. Memory that the host can't read has none.

A consumer that asks for (kDLCPU, 0) gets it from all of them: the same bytes if the host
can read them, else a copy.
"""

import functools
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import torch
import torch.utils.dlpack
from torch import Tensor
from torch.utils.dlpack import DLDeviceType

from xpurt import _prototype

_OWN_CODES: Final = {
    "maia": DLDeviceType.kDLMAIA,
    "privateuseone": DLDeviceType.kDLExtDev,
}
# By the name of a prototype: its type in PyTorch's enum, and its memory.
_prototypes: Final[dict[str, tuple[str, str]]] = {}
DLDevice = tuple[IntEnum, int]


def follow(name: str, type: str, memory: str) -> None:
    """From now on tensors of the prototype have DLPack. Tensors of other devices have
    PyTorch's."""
    _prototypes[name] = type, memory
    _install()


@functools.cache
def _install() -> None:
    methods = {"__dlpack_device__": _device_method, "__dlpack__": _export_method}
    for name, around in methods.items():
        setattr(Tensor, name, around(getattr(Tensor, name)))
    exported = _to_dlpack(torch.to_dlpack)
    imported = _from_dlpack(torch.from_dlpack)
    for module in (torch, torch.utils.dlpack):
        for name, function in (("to_dlpack", exported), ("from_dlpack", imported)):
            setattr(module, name, function)


def _device_method(before: Callable[..., DLDevice]) -> Callable[..., DLDevice]:
    @functools.wraps(before)
    def __dlpack_device__(self: Tensor) -> DLDevice:
        if self.device.type not in _prototypes:
            return before(self)
        return _device_of(self)

    return __dlpack_device__


def _device_of(tensor: Tensor) -> DLDevice:
    """Raises BufferError where the host can't read memory of a type without a code."""
    type, memory = _prototypes[tensor.device.type]
    if memory == "xpu":
        return DLDeviceType.kDLOneAPI, _xpu_index(tensor)
    if type in _OWN_CODES:
        return _OWN_CODES[type], tensor.device.index
    if _prototype.prototype_copies(type):
        raise BufferError(
            f"DLPack has no code for {tensor.device}, whose memory the host can't read. "
            f'Give tensor.cpu(), or ask for (kDLCPU, 0), which is a copy: device="cpu".'
        )
    return DLDeviceType.kDLCPU, 0


def _xpu_index(tensor: Tensor) -> int:
    """The number that DLPack has for the ordinal behind the tensor."""
    _, index = torch._C._torchDeviceToDLDevice(torch.device("xpu", tensor.device.index))
    return index


def _export_method(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def __dlpack__(
        self: Tensor,
        *,
        stream: Any | None = -1,
        max_version: tuple[int, int] | None = None,
        dl_device: DLDevice | None = None,
        copy: bool | None = None,
    ) -> Any:
        options: dict[str, Any] = {"max_version": max_version, "copy": copy}
        if self.device.type not in _prototypes:
            return before(self, stream=stream, dl_device=dl_device, **options)
        if self.requires_grad:
            raise BufferError(
                "Can't export tensors that require gradient, use tensor.detach()"
            )
        type, memory = _prototypes[self.device.type]
        own = _device_of(self) if dl_device is None else dl_device
        kind = int(own[0])
        if kind == _OWN_CODES.get(type) and memory != "xpu":
            if dl_device is not None and own != _device_of(self):
                raise _no_such_device(self, own)
            return before(self, stream=stream, dl_device=None, **options)
        if memory == "xpu":
            behind = _prototype.from_prototype(self)
            return before(behind, stream=stream, dl_device=dl_device, **options)
        if kind != DLDeviceType.kDLCPU:
            raise _no_such_device(self, own)
        is_copy = _prototype.prototype_copies(type)
        if is_copy and copy is False:
            raise BufferError(
                f"the host can't read the memory of {self.device}: for the CPU it is "
                "copied. Leave copy=False out."
            )
        if is_copy:
            options["copy"] = None  # it is one
        return before(_prototype.from_prototype(self), stream=None, **options)

    return __dlpack__


def _no_such_device(tensor: Tensor, asked: DLDevice) -> BufferError:
    return BufferError(
        f"{tensor.device} can't be exported as the DLPack device {tuple(map(int, asked))}. "
        "Ask for (1, 0), the CPU, or move the tensor first."
    )


def _to_dlpack(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def to_dlpack(tensor: Tensor) -> Any:
        of_prototype = isinstance(tensor, Tensor) and tensor.device.type in _prototypes
        return tensor.__dlpack__() if of_prototype else before(tensor)

    return to_dlpack


def _from_dlpack(before: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(before)
    def from_dlpack(
        ext_tensor: Any, *, device: Any = None, copy: bool | None = None
    ) -> Tensor:
        """PyTorch's, which takes tensors of prototypes, and makes some."""
        wanted = None if device is None else torch.device(device)
        is_ours = (
            isinstance(ext_tensor, Tensor) and ext_tensor.device.type in _prototypes
        )
        if is_ours and wanted in (None, ext_tensor.device):
            if ext_tensor.requires_grad:
                raise BufferError(
                    "Can't export tensors that require gradient, use tensor.detach()"
                )
            shared: Tensor = ext_tensor.detach()
            return shared.clone() if copy else shared
        if wanted is None or wanted.type not in _prototypes:
            return before(ext_tensor, device=device, copy=copy)
        return _on_prototype(before(ext_tensor), wanted, copy)

    return from_dlpack


def _on_prototype(tensor: Tensor, wanted: torch.device, copy: bool | None) -> Tensor:
    """The same bytes, where they are memory of the device behind."""
    type, memory = _prototypes[wanted.type]
    index = wanted.index
    if index is None:
        index = _prototype.prototype_current(type)
    behind = {"xpu": torch.device("xpu", index), "host": torch.device("cpu")}
    if not copy and behind.get(memory) == tensor.device:
        return _prototype.to_prototype(tensor, type, index)
    if copy is False:
        raise ValueError(
            f"the array is on {tensor.device}: on {wanted} it would be a copy, which "
            "copy=False forbids"
        )
    return tensor.to(torch.device(wanted.type, index))
