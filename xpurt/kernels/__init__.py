"""Kernels on SYCL queues, one declarative row per op."""

from xpurt.kernels.catalog import Entry, op_entries
from xpurt.kernels.policy import (
    configure,
    get_kernel_policy,
    kernel_policy,
    set_kernel_policy,
)
from xpurt.kernels.registration import kernel_cache, register
from xpurt.kernels.report import OpReport, OpRow, op_report
from xpurt.kernels.table import ROWS

__all__ = [
    "Entry",
    "OpReport",
    "OpRow",
    "ROWS",
    "configure",
    "kernel_cache",
    "get_kernel_policy",
    "kernel_policy",
    "op_entries",
    "op_report",
    "register",
    "set_kernel_policy",
]
