"""Storages of a prototype device in `torch.save` and `torch.load`."""

import itertools
from typing import Any

import torch

_priorities = itertools.count(1000)


def register(name: str) -> None:
    """Saved storages name their device, and are loaded there, or where `map_location`
    says."""

    def tag(storage: Any) -> str | None:
        device = storage.device
        return f"{name}:{device.index or 0}" if device.type == name else None

    def load(storage: Any, location: str) -> Any:
        if location.partition(":")[0] != name:
            return None
        # PyTorch makes storages of few device types, but tensors of all.
        elements = torch.empty(0, dtype=torch.uint8).set_(storage)
        return elements.to(location).untyped_storage()

    # PyTorch sorts by priority, and can't sort two of the same.
    torch.serialization.register_package(next(_priorities), tag, load)
