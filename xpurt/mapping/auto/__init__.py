"""AUTO: the choice of a device for each op. The extension gets the costs as data."""

from xpurt.mapping.auto.costs import (
    DeviceCost,
    device_cost,
    identity,
    install_costs,
)
from xpurt.mapping.auto.explained_graphs import (
    ExplainedGraph,
    FormTimes,
    explain_graph,
    is_explaining,
)
from xpurt.mapping.auto.explanation import Candidate, ExplainedOp, Explanation, explain
from xpurt.mapping.auto.preference import preference
from xpurt.mapping.auto.timeline import Timeline, timeline

__all__ = [
    "Candidate",
    "DeviceCost",
    "ExplainedGraph",
    "ExplainedOp",
    "Explanation",
    "FormTimes",
    "Timeline",
    "device_cost",
    "explain",
    "explain_graph",
    "identity",
    "install_costs",
    "is_explaining",
    "preference",
    "timeline",
]
