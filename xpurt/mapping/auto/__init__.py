"""AUTO: the choice of a device for each op. The extension gets the costs as data.

`explanation`, `explained_graphs` and `timeline` are imported at their first use, by
`xpurt.mapping`.
"""

from xpurt.mapping.auto.costs import (
    DeviceCost,
    device_cost,
    identity,
    install_costs,
)
from xpurt.mapping.auto.preference import preference

__all__ = [
    "DeviceCost",
    "device_cost",
    "identity",
    "install_costs",
    "preference",
]
