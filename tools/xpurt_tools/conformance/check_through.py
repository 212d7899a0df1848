"""A sample of the databases through a layer above eager mode, against eager mode.

The bound comes from a float64 run: the error is at most twice that of eager mode, and some
units in the last place of the largest number more. Where eager mode is exact by chance, the
second bound is twice what a float64 run differs by, whose numbers differ by rounding.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from xpurt.optimization.comparison import difference_of
from xpurt.optimization.in_float64 import InFloat64, in_float64
from xpurt.testing import Disagreement, outcome
from xpurt_tools.conformance.calls import Call, call_and_in_place, made_calls
from xpurt_tools.conformance.check_module import Made, made_modules
from xpurt_tools.conformance.databases import Entry, Kind
from xpurt_tools.conformance.gradients import (
    differentiable,
    gradients,
    leaves_that_require_grad,
)
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.layers_above import Layer
from xpurt_tools.conformance.models import made_models
from xpurt_tools.conformance.programs import Programs, around, by_position
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.trial import CPU, Verdict

ROUNDINGS: Final = 8  # of the numbers of a sample, of which the largest effect counts


@dataclass(frozen=True, slots=True)
class Source:
    """samples: of an entry in a dtype, at most so many, in training (True) or not, with
    their positions.
    programs: what is run of a sample."""

    samples: Callable[
        [Entry, torch.dtype, int | None, tuple[bool, ...]], Iterator[tuple[int, Made]]
    ]
    programs: Programs


SOURCES: Final[dict[Kind, Source]] = {
    "module": Source(made_modules, around),
    "op": Source(made_calls, call_and_in_place),
    "model": Source(made_models, lambda made: iter([("call", made)])),
}


def check_through(
    entry: Entry,
    dtype: torch.dtype,
    record: Record,
    layers: Sequence[Layer],
    most_samples: int | None = None,
) -> None:
    """Runs each sample of the entry through the layer, in training if it is for that, and
    in evaluation."""
    source = SOURCES[entry.kind]
    for layer in layers:
        if entry.kind not in layer.kinds:
            continue
        modes = (True, False) if layer.trains else (False,)
        for index, made in source.samples(entry, dtype, most_samples, modes):
            made = by_position(made)
            for variant, program in layer.programs(source.programs)(made):
                _attempt(variant, index, program, layer, record)


def _attempt(
    variant: str, index: int, made: Made, layer: Layer, record: Record
) -> None:
    program, *given = made
    if not layer.takes(program):
        return
    shown = repr(program), "training" if program.training else "eval", *given
    named = f"{variant}, {layer.form}" if layer.form else variant
    for place in layer.devices:
        trial = _Trial(layer, made, torch.device(place), record)
        where = " on CPU tensors" if place == "cpu" else ""
        record.attempt(named + where, index, shown, trial.run)


class _Trial:
    def __init__(
        self, layer: Layer, made: Made, device: torch.device, record: Record
    ) -> None:
        self.layer, self.made, self.device, self.record = layer, made, device, record

    def run(self) -> Verdict:
        expected, error = outcome(self._plain)
        if error is not None:
            return "raised"
        found, error = outcome(self._through)
        try:
            if error is not None:
                raise Disagreement(f"it raised {type(error).__name__}: {error}")
            return self._compared(expected or [], found or [])
        except Disagreement:
            if self.layer.of_pytorch and self.device != CPU and self._fails_on_cpu():
                return "stock"
            raise

    def _fails_on_cpu(self) -> bool:
        there = _Trial(self.layer, self.made, CPU, self.record)
        return isinstance(outcome(there.run)[1], Disagreement)

    def _compared(self, expected: list[Any], found: list[Any]) -> Verdict:
        """Raises TypeError for an object of which each call makes another one, such as the
        cache of a decoder: it would pass as one that depends on the seed."""
        for each in expected:
            if not isinstance(each, Tensor) and each != copy.deepcopy(each):
                raise TypeError(f"{type(each).__name__} can't be compared")
        if self._is_open(expected):
            if _forms(expected) != _forms(found):
                raise Disagreement(f"{_forms(found)}, not {_forms(expected)}")
            return "random"
        exact = self._exact(expected)
        why = self._difference(expected, found, exact)
        if why is None:
            return "values"
        for draw in range(ROUNDINGS):
            near = self._exact(expected, draw)
            near = [
                in_type_of(one, other)
                for one, other in zip(near, expected, strict=True)
            ]
            # A gradient whose terms cancel, as of a bias before a norm: rounded as these.
            if self._difference(near, found, exact, _largest(exact)) is None:
                return "wider"
        raise Disagreement(why)

    def _is_open(self, expected: list[Any]) -> bool:
        """Whether the values depend on the seed, or are those of unset memory."""
        program = self.made[0]
        if isinstance(program, Call) and program.undetermined:
            return True
        other = self._plain(seed=1)
        return self._difference(expected, other, expected) is not None

    def _difference(
        self, expected: Any, found: Any, exact: Any, scale: float = 0.0
    ) -> str | None:
        with self.layer.beside(self.device.type):
            return difference_of(expected, found, exact, scale)

    def _inputs(self) -> Made:
        module, args, kwargs = self.made
        there = copy.deepcopy(module).to(self.device)
        return there, *moved((args, kwargs), self.device)

    def _plain(self, seed: int = 0) -> list[Any]:
        module, args, kwargs = self._inputs()
        model = self.layer.reference(module)
        with self.layer.beside(self.device.type):
            return self._results(model, model, args, kwargs, seed)

    def _exact(self, expected: list[Any], draw: int | None = None) -> list[Any]:
        """The results in float64; those of eager mode if there are none in float64.
        draw: of numbers that differ by a unit in the last place, drawn by it."""
        module, args, kwargs = self._inputs()
        model = self.layer.reference(module)
        signs = None if draw is None else torch.Generator().manual_seed(draw)
        made: dict[int, Any] = {}

        def wide(each: Any) -> Any:
            if not isinstance(each, Tensor):
                return in_float64(each)
            if id(each) not in made:
                values = in_float64(each.detach())
                if signs is not None and each.is_floating_point():
                    values = rounded_as(self.layer.dtype or each.dtype, values, signs)
                is_parameter = isinstance(each, nn.Parameter)
                values = nn.Parameter(values, False) if is_parameter else values
                made[id(each)] = values.requires_grad_(each.requires_grad)
            return made[id(each)]

        def call(*args: Any, **kwargs: Any) -> Any:
            with InFloat64():
                return model(*args, **kwargs)

        def run() -> list[Any]:
            for owner in model.modules():
                for tensors in (owner._parameters, owner._buffers):
                    tensors.update({name: wide(each) for name, each in tensors.items()})
            return self._results(model, call, *tree_map(wide, (args, kwargs)))

        found, error = outcome(run)
        if error is None and found is not None and _alike(found, expected):
            return found
        return expected

    def _through(self) -> list[Any]:
        module, args, kwargs = self._inputs()
        call = self.layer.made(module)
        with self.layer.within(self.device.type):
            return self._results(module, call, args, kwargs)

    def _results(
        self,
        module: nn.Module,
        call: Callable[..., Any],
        args: Any,
        kwargs: Any,
        seed: int = 0,
    ) -> list[Any]:
        """Of two calls: between them the parameters change, if eager mode sees that."""
        torch.manual_seed(seed)
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
            found += [result, made]
            if self.layer.is_frozen:
                continue
            found.append(list(module.buffers()))
            with torch.no_grad():
                for each in module.parameters():
                    each.mul_(1.25)
        return [_kept(each) for each in tree_leaves(found)]


def _kept(each: Any) -> Any:
    if not isinstance(each, Tensor):
        return each
    dense = each.detach() if each.layout is torch.strided else each.detach().to_dense()
    return dense.clone()


def _largest(found: list[Any]) -> float:
    return max(
        (
            float(each.abs().nan_to_num(0.0, 0.0, 0.0).max())
            for each in found
            if isinstance(each, Tensor) and each.is_floating_point() and each.numel()
        ),
        default=0.0,
    )


def _alike(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(
        isinstance(one, Tensor) == isinstance(other, Tensor)
        and (not isinstance(one, Tensor) or one.shape == other.shape)
        for one, other in zip(found, expected, strict=True)
    )


def rounded_as(dtype: torch.dtype, values: Tensor, draw: torch.Generator) -> Tensor:
    """Values that differ by a unit in the last place of `dtype`, up or down."""
    signs = torch.randint(0, 2, values.shape, generator=draw) * 2 - 1
    return values * (1 + torch.finfo(dtype).eps * signs.to(values.device))


def in_type_of(one: Any, other: Any) -> Any:
    """A tensor in the dtype of another one; `other` where they are no tensors."""
    return one.to(other.dtype) if isinstance(one, Tensor) else other


def _forms(found: list[Any]) -> list[Any]:
    return [
        (each.dtype, tuple(each.shape), each.device)
        if isinstance(each, Tensor)
        else type(each)
        for each in found
    ]
