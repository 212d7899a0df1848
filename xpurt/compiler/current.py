"""What Inductor is compiling now."""

from typing import Any

from torch._inductor.ir import Layout
from torch._inductor.virtualized import V


def graph() -> Any:
    """The graph that is being lowered: a GraphLowering."""
    return V.graph


def kernel() -> Any:
    """The kernel that is being generated: an OpenCLKernel."""
    return V.kernel


def is_number(name: str) -> bool:
    """Whether a buffer is a CPU tensor without dimensions, which kernels take by value.

    Inductor's own list has those that kernels of its list of GPUs read.
    """
    now = graph()
    if now.is_unspec_arg(name):
        return True
    made = now.name_to_buffer.get(name)
    layout = getattr(made, "layout", None)
    if not isinstance(layout, Layout):
        return False  # an input, or several results
    return layout.device.type == "cpu" and not layout.size
