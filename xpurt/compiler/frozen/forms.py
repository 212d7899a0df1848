"""Two forms of a graph with frozen parameters, of which one is kept.

Note [Frozen graphs in two forms]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Freezing makes constants of the parameters, and both forms pack them: the native form
for PyTorch's ops on oneDNN, the sycl form for xpurt's. Inductor freezes a graph by
passes for its device, so each form starts from the graph before it is frozen.

Which form is faster depends on layouts and on what is fused, and the two differ by a
few percent. No estimate can tell them apart, so both are compiled, and measured in the
first calls: see Note [Two forms] in csrc/schedule/planning/two_forms.h. Other graphs
keep both forms, since either may become the faster one. Here each has a copy of the
weights. So one stays, and the other is freed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Final

import torch
from torch._guards import TracingContext
from torch._inductor import config
from torch._inductor.virtualized import V
from torch.fx import GraphModule

from xpurt import _C, torch_versions
from xpurt.compiler import (
    form_estimate,
    host_code,
    host_graph,
    op_by_op,
    second_form,
)
from xpurt.compiler.form_choice import Code, FormChoice
from xpurt.compiler.form_estimate import Estimate, GraphWork, work_of
from xpurt.kernels import get_kernel_policy
from xpurt.mapping import current_placement

# Freezes a graph and compiles it: Inductor's function, with its settings.
Freeze = Callable[..., Code]

_LISTS: Final = ("params_flat", "params_flat_unwrap_subclasses")


class OneOfTwo(FormChoice):
    """Compiled code in two forms. Once both are measured, one is kept."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept: Code | None = None
        self._both = _C.TwoForms(price_us=0, lost_us=0, ends=True)

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        kept = self._kept or self._chosen()
        return super().__call__(inputs) if kept is None else kept(inputs)

    def _forms_of(self, inputs: list[Any]) -> _C.TwoForms:
        return self._both  # the graph is of one size

    def _chosen(self) -> Code | None:
        """The form to keep; None if it is not known yet."""
        with self._one_thread:
            if self._kept is not None:
                return self._kept
            by_kernels = False if self.kernels is None else self._both.decided
            if by_kernels is None:
                return None
            kept: Code = self.kernels if by_kernels else self.native
            # Another thread may be about to call any of the two.
            self._kept = self.native = self.kernels = kept
            return kept


def freeze(before: Freeze, graph: GraphModule, inputs: Sequence[Any]) -> Code:
    """Freezes a graph of tensors on one ordinal, and compiles it to native code; to
    kernels, too, if these may be faster."""
    (index,) = host_graph.ordinals_in(graph, inputs)
    work = work_of(graph)
    expected = second_form.estimate_of(work, index)
    written = _written_inputs(graph)
    kernels = None
    if _is_choice(graph, inputs, index) and _may_pay(work, expected):
        kernels = _frozen_kernels(before, graph, inputs)
    host_graph.to_host(graph, index)
    inputs = [host_graph.on_host(each) for each in inputs]
    with _parameters(host_graph.on_host, free=True):
        code, native = _with_graph(before, graph, inputs)
    if kernels is None or kernels[1].output_strides != native.output_strides:
        return code
    choice = OneOfTwo(code, kernels[0], index, expected, written=written, build_us=0.0)
    # AOTAutograd copies the attributes of what it calls, and would keep both.
    return host_code.boxed(choice)


def _written_inputs(graph: GraphModule) -> list[int]:
    """The positions of the inputs that the graph writes to. In a graph of AOTAutograd
    each write is a copy into an input, at its end."""
    copy = torch.ops.aten.copy_.default
    return [
        at
        for at, each in enumerate(graph.graph.find_nodes(op="placeholder"))
        if any(user.target is copy and user.args[0] is each for user in each.users)
    ]


def _is_choice(graph: GraphModule, inputs: Sequence[Any], index: int) -> bool:
    """Whether the graph can be compiled in both forms, and the forms be measured."""
    if get_kernel_policy() != "auto" or config.cpp_wrapper or V.aot_compilation:
        return False
    if not _C.learns() or len(current_placement().ordinals[index]) > 1:
        return False
    if any(not isinstance(each, torch.Tensor) for each in inputs):
        return False  # sizes change, and primitives are made for known ones
    return host_graph.is_on_device(graph)


def _may_pay(work: GraphWork, expected: Estimate) -> bool:
    """Whether it is worth compiling kernels beside native code. Both compute products
    and convolutions by oneDNN, so no form of these is expected to be slower."""
    has_products = work.flops > 0 and expected.native_us >= form_estimate.LEAST_US
    return has_products or expected.kernels_may_pay


def _frozen_kernels(
    before: Freeze, graph: GraphModule, inputs: Sequence[Any]
) -> tuple[Code, Any] | None:
    """The frozen graph as kernels, and the compiled graph in it; None if kernels can't
    compute it. The graph given is not changed."""
    made = GraphModule(graph, deepcopy(graph.graph))
    made.meta = dict(graph.meta)
    try:
        with (
            _parameters(lambda each: each, free=False),
            # The strides of the outputs are reported by the native form.
            TracingContext.report_output_strides(),
            config.patch(freezing_discard_parameters=False),
            op_by_op.refused(),
        ):
            settings = before.keywords  # type: ignore[attr-defined]
            unrecorded = torch_versions.without_cudagraphs(settings)
            return _with_graph(before, made, inputs, **unrecorded)
    except op_by_op.NoKernels:
        return None


def _with_graph(
    before: Freeze, graph: GraphModule, inputs: Sequence[Any], **changed: Any
) -> tuple[Code, Any]:
    """Frozen code, and the compiled graph that it calls."""
    compiled: list[Any] = []
    compile = before.keywords["inner_compile"]  # type: ignore[attr-defined]

    def kept(*args: Any, **kwargs: Any) -> Any:
        compiled.append(compile(*args, **kwargs))
        return compiled[0]

    code = before(graph, inputs, inner_compile=kept, **changed)
    return code, compiled.pop()


@contextmanager
def _parameters(convert: Callable[[Any], Any], *, free: bool) -> Iterator[None]:
    """Within it, the parameters to freeze are as `convert` makes them.

    free: whether those that became constants are removed from the tracing context, as
    Inductor does. Otherwise the graph can be frozen again.
    """
    context = TracingContext.try_get()
    if context is None or context.params_flat is None:
        yield
        return
    lists = {name: getattr(context, name) for name in _LISTS}
    lists = {name: each for name, each in lists.items() if each is not None}
    metadata: Any = context.fw_metadata
    static = getattr(metadata, "static_input_indices", None)
    for name, each in lists.items():
        setattr(context, name, [convert(param) for param in each])
    try:
        yield
    finally:
        for name, each in lists.items():
            for i, param in enumerate(getattr(context, name)):
                if free and param is None:  # it is in a constant now
                    each[i] = None
            setattr(context, name, each)
        if metadata is not None and not free:
            metadata.static_input_indices = static
