"""Kernels on SYCL queues, one declarative row per op."""

from xpurt.kernels.catalog import Entry, op_entries
from xpurt.kernels.costs.calibration_store import (
    apply_costs,
    calibration_path,
    identity_of,
    keep_calibration,
    kept_calibration,
    known_costs,
    shipped,
)
from xpurt.kernels.costs.curves import (
    BadCosts,
    Calibration,
    Curve,
    Identity,
    Point,
    Rates,
)
from xpurt.kernels.policy import (
    configure,
    get_kernel_policy,
    kernel_policy,
    set_kernel_policy,
)
from xpurt.kernels.registration import kernel_cache, register
from xpurt.kernels.report import (
    DeviceRow,
    OpReport,
    OpRow,
    devices_table,
    op_report,
)
from xpurt.kernels.rows.cost_classes import OPS_OF_THEIR_OWN, cost_class
from xpurt.kernels.rows.table import ROWS

__all__ = [
    "Entry",
    "BadCosts",
    "Calibration",
    "Curve",
    "Identity",
    "OPS_OF_THEIR_OWN",
    "OpReport",
    "OpRow",
    "Point",
    "ROWS",
    "Rates",
    "apply_costs",
    "calibration_path",
    "DeviceRow",
    "configure",
    "devices_table",
    "cost_class",
    "identity_of",
    "keep_calibration",
    "kept_calibration",
    "known_costs",
    "shipped",
    "kernel_cache",
    "get_kernel_policy",
    "kernel_policy",
    "op_entries",
    "op_report",
    "register",
    "set_kernel_policy",
]
