"""Modules of a model on different devices."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from xpurt.arguments import check_type
from xpurt.errors import MappingError, nearest
from xpurt.mapping import Placement, current_placement, prefer


class Placed:
    """The hooks that `place` added to a model; `remove` removes them."""

    def __init__(self) -> None:
        self._handles: list[Any] = []

    def add(self, handle: Any) -> None:
        self._handles.append(handle)

    def remove(self) -> None:
        """Removes the hooks: modules stay on their devices, inputs no longer move."""
        while self._handles:
            self._handles.pop().remove()


def place(model: nn.Module, devices: Mapping[str, str | int | torch.device]) -> Placed:
    """Moves modules of a model to devices, and their inputs at each call.

    devices: names of modules, as in ``model.named_modules()`` ("" is the whole model),
        mapped to devices: an ordinal (1, "xpu:1"), or a kind ("CPU", "GPU",
        "accelerator"). The longest name that contains a module decides.

    Under AUTO all devices are behind one ordinal. There a kind is the device that the
    module's ops prefer (`xpurt.prefer`), and the scheduler moves the data. Under other
    mappings a kind is the first ordinal on such a device. Parameters and buffers move
    there now, and tensors among the arguments of a call move there at the call. The
    results stay on that device.

    Raises TypeError for arguments of other types, ValueError for a name that is no
    module, and MappingError for a device that the mapping does not have; nothing is
    moved then.
    """
    _check_types(model, devices)
    modules = dict(model.named_modules())
    for name in devices:
        if name not in modules:
            raise ValueError(_no_such_module(model, name, modules))
    placement = current_placement()
    targets = {name: _target(where, placement) for name, where in devices.items()}
    placed = Placed()
    for name in sorted(targets, key=len):  # inner modules after those around them
        index, kind = targets[name]
        module = modules[name]
        module.to(torch.device("xpu", index))
        _move_inputs(module, torch.device("xpu", index), placed)
        if kind is not None:
            _prefer(module, kind, placed)
    return placed


_KINDS_OF_DEVICE = 'Give an ordinal (1, "xpu:1") or a kind ("CPU", "GPU").'


def _check_types(model: Any, devices: Any) -> None:
    check_type("place()", model, nn.Module, "a module", "Give a torch.nn.Module.")
    example = "Write place(model, {'encoder': 'GPU', 'decoder': 'xpu:1'})."
    check_type("place()", devices, Mapping, "names of modules to devices", example)
    for name, where in devices.items():
        check_type("place()", name, str, "names of modules", example)
        check_type(
            f"place(): {name!r}",
            where,
            str | int | torch.device,
            "a device",
            _KINDS_OF_DEVICE,
        )


def _no_such_module(model: nn.Module, name: str, modules: Collection[str]) -> str:
    parts = [part for part in modules if part]
    if not parts:
        return (
            f"place() was given {name!r}, and a {type(model).__name__} has no parts. "
            "Write '' for the whole of it."
        )
    near = nearest(name, parts)
    hint = f"Did you mean {near!r}? " if near else ""
    return f"the model has no module {name!r}; it has {', '.join(map(repr, parts))}. {hint}"


def _target(
    where: str | int | torch.device, placement: Placement
) -> tuple[int, str | None]:
    """The ordinal, and the kind to prefer on it if it has several devices."""
    text = str(where).lower().removeprefix("xpu:")
    if text == "xpu":
        return torch.xpu.current_device(), None
    if text.isdigit():
        placement.check_index(int(text))
        return int(text), None
    # torch.device("cpu") is not the CPU behind xpu: only a string names a kind.
    # The current ordinal has precedence: under a launcher all have the same devices.
    current = torch.xpu.current_device()
    for index in (current, *range(len(placement.ordinals))):
        found = placement.ordinals[index]
        if isinstance(where, str) and any(device.kind == text for device in found):
            return index, text if len(found) > 1 else None
    kinds = sorted({device.kind for found in placement.ordinals for device in found})
    last = len(placement.ordinals) - 1
    raise MappingError(
        f'"{where}" is no device of mapping "{placement.mapping}": it has xpu:0'
        f"{f' to xpu:{last}' if last else ''}, of kind {', '.join(kinds)}. "
        f"{_KINDS_OF_DEVICE}"
    )


def _move_inputs(module: nn.Module, device: torch.device, placed: Placed) -> None:
    def move(
        _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        moved: tuple[tuple[Any, ...], dict[str, Any]] = tree_map_only(
            torch.Tensor, lambda tensor: tensor.to(device), (args, kwargs)
        )
        return moved

    placed.add(module.register_forward_pre_hook(move, with_kwargs=True))


def _prefer(module: nn.Module, kind: str, placed: Placed) -> None:
    """Forward runs under `prefer`; the cost model chooses devices for backward."""
    entered: list[Any] = []

    def enter(_: nn.Module, __: tuple[Any, ...]) -> None:
        entered.append(prefer(kind))
        entered[-1].__enter__()

    def leave(_: nn.Module, __: tuple[Any, ...], ___: Any) -> None:
        entered.pop().__exit__(None, None, None)

    placed.add(module.register_forward_pre_hook(enter))
    placed.add(module.register_forward_hook(leave, always_call=True))
