"""Runs of a model over the calibration inputs, and what layers see in them."""

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from xpurt.arguments import wrong_type


class Calibration:
    """The inputs of a calibration, each checked once.

    An input is a tensor, a tuple or list of positional arguments, or a mapping of named
    ones. Raises TypeError if `inputs` can't be iterated, and ValueError if it is empty or
    if an input is on another device than the model.
    """

    def __init__(self, inputs: Any, device: torch.device) -> None:
        if not isinstance(inputs, Iterable) or isinstance(
            inputs, Tensor | Mapping | str
        ):
            raise wrong_type(
                "quantize(calibration=)",
                "an iterable of inputs",
                inputs,
                "Give a list of some batches, or a DataLoader over inputs.",
            )
        self.inputs = list(inputs)
        if not self.inputs:
            raise ValueError(
                "quantize(calibration=) wants at least one input; found none. Give some "
                "batches of what the model will see."
            )
        for number, each in enumerate(self.inputs):
            for leaf in tree_leaves(each):
                if isinstance(leaf, Tensor) and leaf.device.type != device.type:
                    raise ValueError(
                        f"quantize(calibration=) wants inputs on {device}, where the "
                        f"model is; input {number} is on {leaf.device}. Move it by "
                        f'.to("{device}").'
                    )

    def run_first(self, model: nn.Module) -> Any:
        """The model's result for the first input."""
        return _call(model, self.inputs[0])

    def run(self, model: nn.Module, title: str) -> None:
        """Runs the model over all inputs, with a bar if tqdm is installed."""
        for each in _with_bar(self.inputs, title):
            _call(model, each)


def _call(model: nn.Module, given: Any) -> Any:
    # Not inference mode: what observers keep would be inference tensors.
    with torch.no_grad():
        if isinstance(given, Mapping):
            return model(**given)
        if isinstance(given, tuple | list):
            return model(*given)
        return model(given)


def _with_bar(inputs: list[Any], title: str) -> Iterable[Any]:
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ModuleNotFoundError:
        return inputs
    # None: no bar unless a person looks at it.
    bar: Iterable[Any] = tqdm(inputs, desc=title, unit="batch", disable=None)
    return bar


@contextmanager
def inputs_seen(
    layers: Mapping[str, nn.Module], see: Callable[[str, Tensor], None]
) -> Iterator[None]:
    """Within it, `see` gets the name and the input of each layer that is called."""

    def hook(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def seen(_: nn.Module, args: tuple[Any, ...]) -> None:
            see(name, args[0])

        return seen

    handles = [
        layer.register_forward_pre_hook(hook(name)) for name, layer in layers.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@dataclass
class Links:
    """Which module's result, the very tensor, another one got as its input.

    before: the producer of each consumer, by name; the latest one, if modules return
        their input.
    calls: how often each module was called.
    """

    before: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


def links_of(model: nn.Module, calibration: Calibration) -> Links:
    """The links between the model's modules in its run over the first input."""
    links = Links()
    producers: dict[int, str] = {}
    kept: list[Tensor] = []  # alive, so that no other tensor gets the same id

    def before(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def hook(_: nn.Module, args: tuple[Any, ...]) -> None:
            links.calls[name] = links.calls.get(name, 0) + 1
            if args and id(args[0]) in producers:
                links.before[name] = producers[id(args[0])]

        return hook

    def after(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, __: Any, result: Any) -> None:
            if isinstance(result, Tensor) and not isinstance(module, nn.Identity):
                kept.append(result)
                producers[id(result)] = name

        return hook

    handles = []
    for name, module in model.named_modules():
        if not any(module.children()):
            handles.append(module.register_forward_pre_hook(before(name)))
            handles.append(module.register_forward_hook(after(name)))
    try:
        calibration.run_first(model)
    finally:
        for handle in handles:
            handle.remove()
    return links
