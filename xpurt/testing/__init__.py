"""Tools for users to test code for devices that they do not have."""

from xpurt.testing.gpu import delay_virtual_gpu, fail_virtual_gpu, virtual_gpu
from xpurt.testing.kernels import KernelCheck, KernelFault, check_kernels
from xpurt.testing.oracle import (
    Comparison,
    Disagreement,
    agree,
    compare_errors,
    copied,
    outcome,
)

__all__ = [
    "Comparison",
    "Disagreement",
    "KernelCheck",
    "KernelFault",
    "agree",
    "check_kernels",
    "compare_errors",
    "copied",
    "delay_virtual_gpu",
    "fail_virtual_gpu",
    "outcome",
    "virtual_gpu",
]
