"""AUTO: which device runs what. The costs go down to the extension as data."""

from xpurt.mapping.auto.costs import (
    DeviceCost,
    device_cost,
    identity,
    install_costs,
)
from xpurt.mapping.auto.preference import preference

__all__ = ["DeviceCost", "device_cost", "identity", "install_costs", "preference"]
