"""Kernels on SYCL queues, one declarative row per op."""

from xpurt.kernels.policy import get_kernel_policy, kernel_policy, set_kernel_policy
from xpurt.kernels.registration import register
from xpurt.kernels.table import ROWS

__all__ = [
    "ROWS",
    "get_kernel_policy",
    "kernel_policy",
    "register",
    "set_kernel_policy",
]
