"""AUTO: the choice of a device for each op. The extension gets the costs as data."""

from xpurt.mapping.auto.costs import (
    DeviceCost,
    device_cost,
    identity,
    install_costs,
)
from xpurt.mapping.auto.explanation import Candidate, ExplainedOp, Explanation, explain
from xpurt.mapping.auto.preference import preference
from xpurt.mapping.auto.timeline import Timeline, timeline

__all__ = [
    "Candidate",
    "DeviceCost",
    "ExplainedOp",
    "Explanation",
    "Timeline",
    "device_cost",
    "explain",
    "identity",
    "install_costs",
    "preference",
    "timeline",
]
