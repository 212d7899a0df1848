"""`tensor.<name>()`, `tensor.is_<name>` and `module.<name>()` of a prototype device."""

import torch
from torch import Tensor, nn

Device = torch.device | str | int | None


def define(name: str) -> None:
    """Defines those that PyTorch does not have for the type, or not in full."""

    def on(device: Device) -> torch.device:
        if device is None:
            return torch.device(name)
        return (
            torch.device(name, device)
            if isinstance(device, int)
            else torch.device(device)
        )

    def to_tensor(
        tensor: Tensor,
        device: Device = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> Tensor:
        return tensor.to(
            on(device), non_blocking=non_blocking, memory_format=memory_format
        )

    def to_module(module: nn.Module, device: Device = None) -> nn.Module:
        return module.to(on(device))

    # PyTorch's own Tensor.ipu takes no index.
    setattr(Tensor, name, to_tensor)
    if not hasattr(nn.Module, name):
        setattr(nn.Module, name, to_module)
    if not hasattr(Tensor, f"is_{name}"):
        setattr(
            Tensor, f"is_{name}", property(lambda tensor: tensor.device.type == name)
        )
