"""Spreading tensors over xpu devices and bringing them back, for
`torch.nn.DataParallel`.

PyTorch calls these functions through names in ``torch._C`` that only CUDA builds have.
There they take tensors of CUDA as before. A device is given by its index.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

import torch

Streams = Sequence[torch.Stream | None] | None


def names() -> dict[str, Callable[..., Any]]:
    """The names in ``torch._C``."""
    ours: dict[str, Callable[..., Any]] = {
        "_broadcast": broadcast,
        "_broadcast_out": broadcast_out,
        "_broadcast_coalesced": broadcast_coalesced,
        "_scatter": scatter,
        "_scatter_out": scatter_out,
        "_gather": gather,
        "_gather_out": gather_out,
    }
    return {
        name: _beside_cuda(getattr(torch._C, name, None), function)
        for name, function in ours.items()
    }


def _beside_cuda(
    cuda: Callable[..., Any] | None, ours: Callable[..., Any]
) -> Callable[..., Any]:
    """The function for both devices. Of CPU tensors the accelerator decides."""
    if cuda is None:
        return ours

    @wraps(ours)
    def either(tensors: Any, *args: Any, **settings: Any) -> Any:
        given = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        device = given[0].device if given else None
        if device is None or device.type == "cpu":
            device = torch.accelerator.current_accelerator()
        of_xpu = device is not None and device.type == "xpu"
        return (ours if of_xpu else cuda)(tensors, *args, **settings)

    return either


def broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
    """The tensor on each of the devices; on its own device, the tensor itself."""
    if tensor.is_xpu and (not devices or devices[0] != tensor.get_device()):
        raise RuntimeError(
            f"a tensor on {tensor.device} is broadcast to a list of devices that begins "
            f"with its own; found {list(devices)}"
        )
    return [tensor.to(f"xpu:{device}", non_blocking=True) for device in devices]


def broadcast_out(
    tensor: torch.Tensor, out: Sequence[torch.Tensor]
) -> Sequence[torch.Tensor]:
    for each in out:
        if not each.is_xpu or each.shape != tensor.shape:
            raise RuntimeError(
                f"out= of a broadcast are xpu tensors of shape {tuple(tensor.shape)}; "
                f"found {tuple(each.shape)} on {each.device}"
            )
        each.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int
) -> list[list[torch.Tensor]]:
    """For each device the list of tensors.

    buffer_size: bytes per transfer; ignored, each tensor is sent by itself.
    """
    by_tensor = [broadcast(tensor, devices) for tensor in tensors]
    return [[copies[i] for copies in by_tensor] for i in range(len(devices))]


def scatter(
    tensor: torch.Tensor,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Streams = None,
) -> list[torch.Tensor]:
    """Chunks of the tensor along `dim`, one per device: of equal sizes, or of
    `chunk_sizes`. There are fewer chunks than devices if the tensor is short."""
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    elif len(chunk_sizes) == len(devices):
        chunks = torch.split_with_sizes(tensor, list(chunk_sizes), dim)
    else:
        raise RuntimeError(
            f"chunk_sizes has one size for each of {len(devices)} devices; found "
            f"{len(chunk_sizes)}"
        )
    moved = []
    for i, (chunk, device) in enumerate(zip(chunks, devices, strict=False)):
        with _on(streams, i):
            moved.append(chunk.to(f"xpu:{device}", non_blocking=True))
    return moved


def scatter_out(
    tensor: torch.Tensor,
    out: Sequence[torch.Tensor],
    dim: int = 0,
    streams: Streams = None,
) -> Sequence[torch.Tensor]:
    sizes = [each.size(dim) for each in out]
    chunks = torch.split_with_sizes(tensor, sizes, dim)
    for i, (chunk, each) in enumerate(zip(chunks, out, strict=True)):
        with _on(streams, i):
            each.copy_(chunk, non_blocking=True)
    return out


def gather(
    tensors: Sequence[torch.Tensor], dim: int, destination: int | None = None
) -> torch.Tensor:
    """The tensors concatenated along `dim`, on xpu:`destination`: None is the current
    device, -1 the CPU."""
    if destination is None:
        destination = torch.xpu.current_device()
    device = "cpu" if destination == -1 else f"xpu:{destination}"
    return torch.cat([tensor.to(device, non_blocking=False) for tensor in tensors], dim)


def gather_out(
    tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int
) -> torch.Tensor:
    start = 0
    for tensor in tensors:
        out.narrow(dim, start, tensor.size(dim)).copy_(tensor)
        start += tensor.size(dim)
    if start != out.size(dim):
        raise RuntimeError(
            f"out= has {out.size(dim)} elements along dimension {dim}, the tensors have "
            f"{start} in all"
        )
    return out


def _on(streams: Streams, position: int) -> Any:
    stream: Any = streams[position] if streams is not None else None
    return nullcontext() if stream is None else torch.xpu.stream(stream)
