"""One op in one dtype: call, gradients, strided inputs, out=, in-place, errors."""

import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import _C
from torch.utils._pytree import tree_leaves, tree_map

from xpurt.testing import outcome
from xpurt_tools.conformance.databases import GPUS, Entry
from xpurt_tools.conformance.gpu_types import Oracle, wide_oracle
from xpurt_tools.conformance.gradients import (
    differentiable,
    gradients,
    leaves_that_require_grad,
)
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.layouts import (
    OF_GRADIENTS,
    OF_GRADIENTS_OF_SUCH_INPUTS,
    NewRanks,
    Relayout,
    gradients_by_layout,
    of_inputs,
    values_alone,
)
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tested_device import has_layouts
from xpurt_tools.conformance.tolerance import Tolerance, tolerance
from xpurt_tools.conformance.trial import CPU, Verdict, trial

Inputs = tuple[Any, tuple[Any, ...], dict[str, Any]]

# Some forms of a call differ only in the memory that is read or written. For these the
# first few samples are enough.
STRIDED_SAMPLES = 4
RESIZED_SAMPLES = 2

# PyTorch requires these tensors on the CPU, whatever the device of the others is:
# argument numbers by op.
ARGUMENTS_ON_CPU = {"tensor_split": (0,)}


def check_op(
    entry: Entry, dtype: torch.dtype, record: Record, most_samples: int | None = None
) -> None:
    """Runs every sample that PyTorch has for this op and dtype, in every form."""
    op = entry.info
    check = OpCheck(op, record, tolerance(op, dtype))
    devices: tuple[str, ...] = ("cpu",)
    if dtype in entry.gpu_dtypes:
        check.oracle, devices = wide_oracle(dtype), GPUS
    with_grad = any(dtype in op.supported_backward_dtypes(each) for each in devices)
    samples = existing(op.sample_inputs("cpu", dtype, requires_grad=with_grad))
    ranks = NewRanks()
    for index, sample in spread(samples, most_samples):
        check.call(index, sample)
        if index < STRIDED_SAMPLES:
            check.strided(index, sample)
        # A conversion would undo the layout of the operands.
        same_types = check.oracle is outcome
        if same_types and ranks.has((sample.input, sample.args, sample.kwargs)):
            check.layouts(index, sample)
        if op.supports_out:
            check.out(index, sample)
        if op.inplace_variant is not None and not sample.broadcasts_input:
            check.in_place(index, sample)
    if op.error_inputs_func is not None and dtype is _error_dtype(entry):
        for index, wrong in enumerate(existing(op.error_inputs("cpu"))):
            check.error(index, wrong.sample_input)


def existing(samples: Iterable[Any]) -> Iterator[Any]:
    """The samples up to the point where PyTorch skips the rest on this machine."""
    try:
        yield from samples
    except unittest.SkipTest:
        return


def _error_dtype(entry: Entry) -> torch.dtype:
    """PyTorch's wrong inputs have dtypes of their own, so one pair is enough."""
    if torch.float32 in entry.dtypes:
        return torch.float32
    return min(entry.dtypes, key=str)


class OpCheck:
    """exactly: strides of empty tensors and the words of errors are compared, too."""

    def __init__(
        self, op: Any, record: Record, tolerance: Tolerance, *, exactly: bool = False
    ) -> None:
        self.exactly = exactly
        self.uninitialized = op.has_nondeterministic_output
        self.op, self.record, self.tolerance = op, record, tolerance
        self.oracle: Oracle[Any] = outcome
        # Without a device, a factory makes a CPU tensor in every call.
        self.given = {"device": "cpu"} if op.is_factory_function else {}
        self.tiers = record.tiers

    def call(
        self,
        index: int,
        sample: Any,
        inputs: Inputs | None = None,
        variant: str = "call",
    ) -> None:
        """The op itself, its gradients, and its arguments after the call.

        inputs: others than the sample's.
        """

        def body(inputs: Inputs) -> Any:
            result = self.called(inputs)
            graph = differentiable(sample.output_process_fn_grad(result))
            return self.compared(result, graph, inputs)

        self.attempt(variant, index, inputs or self.inputs(sample), body)

    def compared(self, result: Any, graph: Any, inputs: Inputs) -> dict[str, Any]:
        """What has to be as on the CPU. graph: the tensors that gradients begin with."""
        return {
            "result": result,
            "gradient": gradients(graph, leaves_that_require_grad(inputs), self.tiers),
            "argument": self._changed(inputs),
            "shares memory with argument": _aliases(result, inputs),
        }

    def strided(self, index: int, sample: Any) -> None:
        """The same numbers in memory with gaps."""
        if not has_layouts():
            return
        try:
            inputs = self.inputs(sample.noncontiguous())
        except Exception:
            return  # there is no such form, for sparse inputs for example

        def body(inputs: Inputs) -> Any:
            with torch.no_grad():
                return {"result": self.called(inputs)}

        self.attempt("strided", index, inputs, body)

    def layouts(self, index: int, sample: Any) -> None:
        """Inputs, and the gradients sent backward, in other layouts."""
        if not has_layouts():
            return

        def body(inputs: Inputs, layouts: Mapping[str, Relayout] = OF_GRADIENTS) -> Any:
            result = self.called(inputs)
            graph = differentiable(sample.output_process_fn_grad(result))
            leaves = leaves_that_require_grad(inputs)
            sent = gradients_by_layout(graph, leaves, self.tiers, layouts)
            return {
                "result": result,
                "gradient sent": sent,
                "gradient": values_alone(gradients(graph, leaves, self.tiers)),
            }

        def body_of_such_inputs(inputs: Inputs) -> Any:
            return body(inputs, OF_GRADIENTS_OF_SUCH_INPUTS)

        inputs = self.inputs(sample)
        if leaves_that_require_grad(inputs):
            self.attempt("gradients laid out otherwise", index, inputs, body)
        for name, there in of_inputs(inputs):
            self.attempt(f"inputs {name}", index, there, body_of_such_inputs)

    def out(self, index: int, sample: Any) -> None:
        """Writes into tensors that exist, and have other contents."""
        full = self._full(sample)
        if full is None:
            return
        self._out("out=", index, sample, full)
        if index < RESIZED_SAMPLES:
            self._out("out= with gaps", index, sample, tree_map(_with_gaps, full))
            empty = tree_map(lambda t: t.new_empty(0), full)
            self._out("out= resized", index, sample, empty)

    def out_of_dtype(
        self, index: int, sample: Any, dtype: torch.dtype, variant: str
    ) -> None:
        """Writes into tensors of another dtype than the result's."""
        full = self._full(sample)
        if full is not None:
            self._out(variant, index, sample, tree_map(lambda t: t.to(dtype), full))

    def _full(self, sample: Any) -> Any:
        """Tensors of ones in the form of the result; None if there are none."""
        with torch.no_grad():
            there = moved(self.inputs(sample), CPU)
            template, error = self.oracle(self.called, there)
        leaves = tree_leaves(template)
        if error or not leaves or not all(map(_is_strided, leaves)):
            return None
        return tree_map(lambda t: torch.ones_like(t.detach()), _as_out(template))

    def _out(self, variant: str, index: int, sample: Any, full: Any) -> None:
        def body(inputs: tuple[Inputs, Any]) -> Any:
            (input_, args, kwargs), out = inputs
            with torch.no_grad():
                result = self.op.op(input_, *args, **kwargs, out=out)
            written = tree_leaves(out)
            return {
                "result": result,
                "out": out,
                "result is out": [
                    one is other
                    for one, other in zip(tree_leaves(result), written, strict=False)
                ],
            }

        self.attempt(variant, index, (self.inputs(sample), full), body)

    def in_place(
        self,
        index: int,
        sample: Any,
        inputs: Inputs | None = None,
        variant: str = "in-place",
    ) -> None:
        if not isinstance(sample.input, torch.Tensor):
            return

        def body(inputs: Inputs) -> Any:
            input_, args, kwargs = inputs
            with self.tiers.unseen():
                changed = input_ if self._with_grad() else input_.detach()
                changed = changed.clone()
            result = self.op.inplace_variant(changed, *args, **kwargs)
            return {
                "result": result,
                "result is input": result is changed,
                "gradient": gradients(
                    differentiable(sample.output_process_fn_grad(result)),
                    leaves_that_require_grad(inputs),
                    self.tiers,
                ),
            }

        self.attempt(variant, index, inputs or self.inputs(sample), body)

    def error(self, index: int, sample: Any) -> None:
        """A call that raises on the CPU has to raise the same exception on xpu."""
        inputs = self.inputs(sample)
        if outcome(self.called, moved(inputs, CPU))[1] is not None:
            self.attempt("error", index, inputs, self.called)

    def inputs(self, sample: Any) -> Inputs:
        return sample.input, sample.args, {**self.given, **sample.kwargs}

    def _moved(self, inputs: Any, device: torch.device) -> Any:
        there = moved(inputs, device)
        if stay := ARGUMENTS_ON_CPU.get(self.op.name):
            input_, args, kwargs = there
            args = tuple(
                moved(old, CPU) if number in stay else new
                for number, (old, new) in enumerate(zip(inputs[1], args, strict=True))
            )
            there = input_, args, kwargs
        return there

    def _changed(self, inputs: Inputs) -> list[torch.Tensor]:
        """The tensors among the arguments that the op may have written to."""
        if self.op.name in ARGUMENTS_ON_CPU:
            return _tensors(inputs[0])
        return [tensor for tensor in _tensors(inputs) if not tensor.is_meta]

    def _with_grad(self) -> bool:
        return bool(self.op.supports_inplace_autograd)

    def called(self, inputs: Inputs) -> Any:
        input_, args, kwargs = inputs
        return self.op.op(input_, *args, **kwargs)

    def attempt(
        self, variant: str, index: int, inputs: Any, body: Callable[[Any], Any]
    ) -> None:
        self.record.attempt(
            variant, index, inputs, lambda: self._trial(inputs, body, self.oracle)
        )

    def _trial(
        self, inputs: Any, body: Callable[[Any], Any], oracle: Oracle[Any] = outcome
    ) -> Verdict:
        return trial(
            lambda device: self._moved(inputs, device),
            body,
            self.tolerance,
            self.tiers,
            uninitialized=self.uninitialized,
            oracle=oracle,
            exactly=self.exactly,
        )


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _is_strided(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided


def _aliases(result: Any, inputs: Any) -> list[list[int]]:
    """For each result, the arguments whose memory it shares: a view stays a view."""
    if not has_layouts():
        return []
    arguments = [
        (position, tensor)
        for position, tensor in enumerate(_tensors(inputs))
        if _is_strided(tensor)
    ]
    alias_of: Callable[..., bool] = _C._is_alias_of  # type: ignore[attr-defined]
    return [
        [position for position, other in arguments if alias_of(one, other)]
        for one in _tensors(result)
        if _is_strided(one)
    ]


def _as_out(template: Any) -> Any:
    """The results in the form that out= requires: named tuples become plain ones."""
    return tuple(template) if isinstance(template, tuple) else template


def _with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    """Ones of the same shape, at every other element of their memory."""
    shape = [*tensor.shape, 2]
    return torch.ones(shape, dtype=tensor.dtype).select(-1, 0)
