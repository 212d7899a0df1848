"""One op in one dtype, compiled for the tested device: its results and its gradients.

The reference is the op on the CPU, as it is without torch.compile. A sample that differs
from it is compared with torch.compile on CPU tensors: what fails there, too, or has that
result, is a limit of the compiler and no failure of the device.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from xpurt.testing import Disagreement, outcome
from xpurt_tools.conformance import tested_device
from xpurt_tools.conformance.check_op import Inputs, OpCheck, existing
from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.layouts import values_alone
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tolerance import tolerance
from xpurt_tools.conformance.trial import Verdict


def check_compiled(
    entry: Entry, dtype: torch.dtype, record: Record, most_samples: int | None = None
) -> None:
    """Runs PyTorch's samples for this op and dtype, each as a program of its own."""
    op = entry.info
    check = _CompiledCheck(op, record, tolerance(op, dtype))
    with_grad = dtype in op.supported_backward_dtypes("cpu")
    samples = existing(op.sample_inputs("cpu", dtype, requires_grad=with_grad))
    for index, sample in spread(samples, most_samples):
        check.call(index, sample)


class _CompiledCheck(OpCheck):
    def compared(self, result: Any, graph: Any, inputs: Inputs) -> dict[str, Any]:
        """A compiled op may return a view or a copy, and strides of its own."""
        found = super().compared(result, graph, inputs)
        del found["shares memory with argument"]
        return found | {"gradient": values_alone(found["gradient"])}

    def called(self, inputs: Inputs) -> Any:
        if not _on_tested_device(inputs):
            return super().called(inputs)
        return self._compiled(inputs)

    def _compiled(self, inputs: Inputs) -> Any:
        input_, args, kwargs = inputs
        op = self.op.op

        def program(input_: Any, args: Any, kwargs: Any) -> Any:
            return op(input_, *args, **kwargs)

        torch._dynamo.reset()
        counters = torch._dynamo.utils.counters["stats"]
        counters.clear()
        found = torch.compile(program)(input_, args, kwargs)
        self.tiers.calls["compiled"] += counters["unique_graphs"]
        return found

    def attempt(
        self, variant: str, index: int, inputs: Any, body: Callable[[Any], Any]
    ) -> None:
        def stock(body: Callable[[Any], Any], inputs: Any) -> Any:
            self.called = self._compiled  # type: ignore[method-assign]
            try:
                return outcome(body, inputs)
            finally:
                del self.called

        def run() -> Verdict:
            try:
                return self._trial(inputs, body)
            except Disagreement as difference:
                try:
                    self._trial(inputs, body, stock)
                except Disagreement:
                    raise difference from None
                return "stock"

        self.record.attempt(variant, index, inputs, run)


def _on_tested_device(inputs: Inputs) -> bool:
    name = tested_device.tested_device().type

    def device(leaf: Any) -> str:
        return str(leaf.device if isinstance(leaf, torch.Tensor) else leaf)

    return any(
        device(leaf).startswith(name)
        for leaf in tree_leaves(inputs)
        if isinstance(leaf, torch.Tensor | torch.device | str)
    )
