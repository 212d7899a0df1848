"""Kernels of Triton in a program on xpu, which has no driver for them."""

from typing import Final

from torch.fx import GraphModule

_CALLS: Final = ("triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional")


def refuse(graph: GraphModule) -> None:
    """Raises RuntimeError if a graph calls a kernel of Triton."""
    for module in graph.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.nodes:
            if getattr(node.target, "_name", "") in _CALLS:
                raise RuntimeError(
                    "this program calls a kernel of Triton with tensors on xpu, and xpu "
                    "has kernels of OpenCL C: Triton has no driver for it. Write the "
                    "kernel in PyTorch's ops, which torch.compile fuses, or in OpenCL C "
                    "(docs/extending.md)."
                )
