"""What Inductor is compiling now."""

from typing import Any

from torch._inductor.virtualized import V


def graph() -> Any:
    """The graph that is being lowered: a GraphLowering."""
    return V.graph


def kernel() -> Any:
    """The kernel that is being generated: an OpenCLKernel."""
    return V.kernel
