"""One module in one dtype through a layer above eager mode, against eager mode.

The module is called by itself and in small programs around it. The bound comes from a
float64 run: the error is at most twice that of eager mode, and some units in the last
place of the largest number more.
"""

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

from xpurt.conformance.check_module import Made, made_module, samples_of
from xpurt.conformance.databases import Entry
from xpurt.conformance.gradients import (
    differentiable,
    gradients,
    leaves_that_require_grad,
)
from xpurt.conformance.inputs import moved
from xpurt.conformance.layers_above import Layer
from xpurt.conformance.record import Record
from xpurt.conformance.spread import spread
from xpurt.conformance.tested_device import tested_device
from xpurt.conformance.trial import CPU, Verdict
from xpurt.optimization.comparison import difference_of
from xpurt.optimization.in_float64 import InFloat64
from xpurt.testing import Disagreement, outcome


class Program(nn.Module):
    """A module of one argument, and what is computed of its result."""

    def __init__(self, module: nn.Module, after: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.module = module
        self.after = after

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.module(x))


class Normed(nn.Module):
    """A convolution, a batch norm with statistics, an addition, an activation."""

    def __init__(self, module: nn.Module, channels: int, rank: int) -> None:
        super().__init__()
        kinds = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
        norm: Any = kinds[rank](channels)
        norm.running_mean.fill_(0.25)
        norm.running_var.fill_(2.0)
        self.module, self.norm = module, norm

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.module(x))
        return F.relu(y + y.mean())


AFTER: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu of a sum": lambda y: F.gelu(y + y.abs()),
    "written in place": lambda y: y.clone().mul_(2).add_(1),
}


def check_through(
    entry: Entry,
    dtype: torch.dtype,
    record: Record,
    layer: Layer,
    most_samples: int | None = None,
) -> None:
    """Runs each of PyTorch's inputs for this module, in training if the layer is for it,
    and in evaluation."""
    devices = [tested_device(), *([CPU] if layer.on_cpu else [])]
    for index, (training, sample) in spread(
        samples_of(entry.info, dtype), most_samples
    ):
        if training and not layer.trains:
            continue
        made, error = outcome(made_module, entry.info, sample, dtype, training)
        if error is not None or made is None:
            continue  # PyTorch can't make the module in this dtype
        made = _by_position(made)
        for variant, program in _programs(made[0], made[1:]):
            for device in devices:
                where = " on CPU tensors" if device is CPU else ""
                shown = repr(program), "training" if training else "eval", *made[1:]
                trial = _Trial(layer, (program, *made[1:]), device, record)
                record.attempt(f"{variant}{where}", index, shown, trial.run)


def _programs(module: nn.Module, given: Any) -> Iterator[tuple[str, nn.Module]]:
    yield "call", module
    args, kwargs = moved(given, CPU)
    if len(args) != 1 or kwargs:
        return
    called: Any = copy.deepcopy(module)
    made, error = outcome(called, *args)
    if error is not None or not isinstance(made, Tensor):
        return
    if not made.is_floating_point():
        return
    for name, after in AFTER.items():
        yield name, Program(module, after).train(module.training)
    kinds = nn.Conv1d | nn.Conv2d | nn.Conv3d
    if isinstance(module, kinds) and made.dim() == module.weight.dim():
        norm = Normed(module, made.shape[1], made.dim())
        yield "batch norm", norm.to(made.dtype).train(module.training)


def _by_position(made: Made) -> Made:
    """The arguments as a program gives them: by position, where that can be."""
    module, args, kwargs = made
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    return module, bound.args, bound.kwargs


class _Trial:
    def __init__(
        self, layer: Layer, made: Made, device: torch.device, record: Record
    ) -> None:
        self.layer, self.made, self.device, self.record = layer, made, device, record

    def run(self) -> Verdict:
        expected, error = outcome(self._plain)
        if error is not None:
            return "raised"
        if difference_of(expected, self._plain(), expected) is not None:
            return "random"
        exact = self._exact()
        found = self._through()
        if (why := difference_of(expected, found, exact)) is not None:
            raise Disagreement(why)
        return "values"

    def _inputs(self) -> Made:
        module, args, kwargs = self.made
        there = copy.deepcopy(module).to(self.device)
        return there, *moved((args, kwargs), self.device)

    def _plain(self) -> Any:
        module, *given = self._inputs()
        return self._results(module, module, *given)

    def _exact(self) -> Any:
        module, *given = self._inputs()

        def call(*args: Any, **kwargs: Any) -> Any:
            with InFloat64():
                return module(*args, **kwargs)

        return self._results(module, call, *given)

    def _through(self) -> Any:
        module, *given = self._inputs()
        call = self.layer.made(module)
        with self.layer.within():
            return self._results(module, call, *given)

    def _results(
        self, module: nn.Module, call: Callable[..., Any], args: Any, kwargs: Any
    ) -> list[Any]:
        """Of two calls: between them the parameters change."""
        torch.manual_seed(0)
        found = []
        for _ in range(2):
            with torch.set_grad_enabled(self.layer.trains):
                result = call(*args, **kwargs)
            wanted = [*module.parameters(), *leaves_that_require_grad((args, kwargs))]
            made = gradients(
                differentiable(result),
                [each for each in wanted if each.requires_grad],
                self.record.tiers,
            )
            found += [result, made, list(module.buffers())]
            with torch.no_grad():
                for each in module.parameters():
                    each.mul_(1.25)
        return [
            each.detach().clone() if isinstance(each, Tensor) else each
            for each in tree_leaves(found)
        ]
