"""The code that Inductor makes of a traced graph.

Note [Code of lazy graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~
AOTAutograd wraps Inductor's code to give it gradients, to replay views and writes, and to
leave autocast. A traced graph writes to nothing and has no gradients, and what runs it has
left autograd and autocast. So its code is called as it is. The wrappers took 0.12 of 3.2 ms
of a training step of an MLP (AMD EPYC with AVX2, 2026-11-30).

Arguments and results of a graph are contiguous. Inductor makes the results of convolutions
channels last. Beside contiguous operands that costs time: a training step of LeNet spent
8.7 ms in the gradients of convolutions, and 5.0 in their layout. So it keeps the layout.

A graph that trains has the indices of max pooling, which Inductor's code finds by looking at
each window a second time. PyTorch's kernel finds both at once: LeNet's step spent 2.2 ms in
it, and 3.9 in Inductor's. So the kernel is called: see xpurt/compiler/called_ops.py.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

# Takes the arguments in a list, which it may clear. Called beneath autograd and autocast.
Code = Callable[[list[Tensor]], Sequence[Tensor]]


def code_of(
    graph: torch.fx.GraphModule, fakes: Sequence[Tensor], kept: Sequence[Any]
) -> Code:
    """Compiles a functional graph of aten ops.

    fakes: its arguments without data. kept: what generated_code.keeping() gave, around this
    call. Raises what the compiler raises."""
    from torch._inductor import compile_fx
    from torch._inductor.decomposition import select_decomp_table

    results: Any = graph.graph.output_node().args[0]
    decompositions = dict(select_decomp_table())
    decompositions.pop(torch.ops.aten.max_pool2d_with_indices.default, None)
    wrapped = cast(
        Callable[..., Any],
        compile_fx.compile_fx(
            graph,
            fakes,
            config_patches={"layout_optimization": False},
            decompositions=decompositions,
        ),
    )
    # Kernels are kept even if the code for the host, which has to run, is not.
    for last in kept[-1:]:
        is_for_host = "xpu" not in last.device_types
        if is_for_host and len(last.output_strides or ()) == len(results):
            return cast(Code, last.current_callable)
    return lambda arguments: list(wrapped(*arguments))
