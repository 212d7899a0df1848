"""Kernels on SYCL queues, one declarative row per op.

`kinds` has the kinds of rows, `rows` the declarations of all ops. `sources` makes
OpenCL C from them, `costs` has the measured costs of ops, and `cache` keeps built
programs. The modules beside these folders register the rows, and report what ran.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from xpurt.kernels.catalog import Entry, op_entries
    from xpurt.kernels.kinds.element_types import TYPES, converted, load, store
    from xpurt.kernels.registration import fail, kernel_cache, make_source, register
    from xpurt.kernels.report import (
        DeviceRow,
        OpReport,
        OpRow,
        add_rows,
        devices_table,
        op_report,
    )
    from xpurt.kernels.rows.cost_classes import OPS_OF_THEIR_OWN, cost_class
    from xpurt.kernels.rows.table import ROWS
    from xpurt.kernels.sources.typed_functions import (
        Functions,
        call,
        keep_source,
        row_expression,
        row_named,
    )

__all__ = [
    "Entry",
    "BadCosts",
    "Calibration",
    "Curve",
    "Functions",
    "Identity",
    "OPS_OF_THEIR_OWN",
    "OpReport",
    "OpRow",
    "Point",
    "ROWS",
    "Rates",
    "TYPES",
    "add_rows",
    "apply_costs",
    "calibration_path",
    "call",
    "converted",
    "DeviceRow",
    "configure",
    "devices_table",
    "cost_class",
    "fail",
    "identity_of",
    "keep_calibration",
    "keep_source",
    "kept_calibration",
    "known_costs",
    "load",
    "make_source",
    "row_expression",
    "row_named",
    "shipped",
    "store",
    "kernel_cache",
    "get_kernel_policy",
    "kernel_policy",
    "op_entries",
    "op_report",
    "register",
    "set_kernel_policy",
]

# Names of modules that are imported when these are asked for: most programs need no
# report, and the rows have as many modules as the rest of xpurt.
_LATER = {
    "DeviceRow": "report",
    "OpReport": "report",
    "OpRow": "report",
    "add_rows": "report",
    "devices_table": "report",
    "op_report": "report",
    "Entry": "catalog",
    "op_entries": "catalog",
    "fail": "registration",
    "kernel_cache": "registration",
    "make_source": "registration",
    "register": "registration",
    "OPS_OF_THEIR_OWN": "rows.cost_classes",
    "cost_class": "rows.cost_classes",
    "ROWS": "rows.table",
    "TYPES": "kinds.element_types",
    "converted": "kinds.element_types",
    "load": "kinds.element_types",
    "store": "kinds.element_types",
    "Functions": "sources.typed_functions",
    "call": "sources.typed_functions",
    "keep_source": "sources.typed_functions",
    "row_expression": "sources.typed_functions",
    "row_named": "sources.typed_functions",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
