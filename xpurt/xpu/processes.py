"""Sending xpu tensors to other processes, through ``torch.multiprocessing``.

Another process cannot open SYCL memory. PyTorch does not know that: it would move the
storage of an xpu tensor into shared memory of the host, without the device's knowledge.
Here a sent tensor arrives as a copy on the same device instead. A request for the same
memory in two processes is an error.
"""

import io
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn, cast

import torch
from torch.multiprocessing import reductions

_SHARE = ("_share_fd_cpu_", "_share_filename_cpu_")


def send_copies() -> Callable[[], None]:
    """Makes xpu tensors travel as copies. Returns a function that undoes this."""
    kinds: set[type] = {torch.Tensor, torch.nn.Parameter, *torch._tensor_classes}
    for kind in kinds:
        ForkingPickler.register(kind, _reduce)
    originals = {name: vars(torch.UntypedStorage)[name] for name in _SHARE}
    for name, original in originals.items():
        setattr(torch.UntypedStorage, name, _guarded(original))

    def undo() -> None:
        for kind in kinds:
            ForkingPickler.register(kind, reductions.reduce_tensor)
        for name, original in originals.items():
            setattr(torch.UntypedStorage, name, original)

    return undo


def _reduce(tensor: torch.Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if tensor.device.type != "xpu":
        theirs: Callable[..., Any] = reductions.reduce_tensor
        return cast(tuple[Callable[..., Any], tuple[Any, ...]], theirs(tensor))
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "an xpu tensor that autograd has computed cannot be sent to another "
            "process, because its graph stays behind. Send tensor.detach()."
        )
    # Bytes, not shared memory: a spawned process reads them after this copy is gone.
    # Through a CPU tensor of its own, without the rest of a larger storage.
    copy = io.BytesIO()
    torch.save(tensor.detach().cpu(), copy)
    return _rebuild, (
        type(tensor),
        copy.getvalue(),
        tensor.device.index,
        tensor.requires_grad,
    )


def _rebuild(
    kind: type[torch.Tensor], copy: bytes, index: int, requires_grad: bool
) -> torch.Tensor:
    loaded: torch.Tensor = torch.load(io.BytesIO(copy), weights_only=True)
    tensor = loaded.to(torch.device("xpu", index))
    if issubclass(kind, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _guarded(share: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(storage: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if storage.device.type == "xpu":
            _refuse(storage)
        return share(storage, *args, **kwargs)

    return guarded


def _refuse(storage: torch.UntypedStorage) -> NoReturn:
    raise RuntimeError(
        f"memory of {storage.device} cannot be shared with another process. Send the "
        "tensor itself, which arrives as a copy on xpu, or share tensor.cpu()."
    )
