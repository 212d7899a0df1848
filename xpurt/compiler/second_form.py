"""Compiles kernels beside the native code of a graph, where they may be faster."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch._inductor.exc import InductorError
from torch._inductor.utils import BoxedBool
from torch._inductor.virtualized import V

from xpurt import _C
from xpurt.compiler import form_estimate, host_graph, op_by_op
from xpurt.compiler.form_choice import BUILD_US, FormChoice
from xpurt.compiler.form_estimate import Estimate, GraphWork
from xpurt.errors import KernelBuildError
from xpurt.mapping import current_placement


def estimate_of(work: GraphWork, index: int) -> Estimate:
    """The expected times of a graph in both forms, with its tensors on xpu:index."""
    at_home = current_placement().homes[index]
    others = [
        form_estimate.DeviceRates(*row[:3])
        for position, row in enumerate(_C.device_costs(index))
        if position != at_home
    ]
    return form_estimate.estimate(work, torch.get_num_threads(), others)


def compile_kernels(
    compile: Callable[..., Any],
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    home: host_graph.Home,
) -> Any:
    """The compiled graph of kernels for a graph for the host, which is not changed.

    None if kernels can't compute it. Called where Inductor makes kernels.
    """
    if V.aot_compilation:
        return None
    made = host_graph.on_device_again(graph, home)
    if made is None:
        return None
    given = host_graph.on_device_inputs(inputs, home)
    try:
        # The strides of the outputs are reported to the tracer by the native form.
        with TracingContext.report_output_strides():
            return compile(made, given, cudagraphs=BoxedBool(False))
    except (InductorError, KernelBuildError) as error:
        if op_by_op.reason_of(error):
            return None
        raise


def join(compiled: Any, kernels: Any, expected: Estimate, index: int) -> None:
    """Makes the compiled native code of a graph a choice between that and kernels.

    Nothing is changed if their results differ in layout.
    """
    if kernels.output_strides != compiled.output_strides:
        return
    compiled.current_callable = FormChoice(
        compiled.current_callable,
        kernels,
        index,
        expected,
        written=compiled.mutated_input_idxs,
        build_us=BUILD_US * kernels.source_code.count("= xpu_kernel("),
    )
    # AOTAutograd's cache would keep one form alone.
    compiled._fx_graph_cache_key = None
