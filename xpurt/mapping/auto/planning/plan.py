"""Planning by the name of a policy."""

from collections.abc import Callable

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning.cpop import cpop
from xpurt.mapping.auto.planning.eft import eft
from xpurt.mapping.auto.planning.exact import exact
from xpurt.mapping.auto.planning.heft import heft
from xpurt.mapping.auto.planning.peft import peft
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph

POLICIES: dict[str, Callable[[TaskGraph], Schedule]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "eft": eft,
    "exact": exact,
}


def plan(graph: TaskGraph, policy: str = "heft") -> Schedule:
    """The device and the times of each task of a graph.

    policy:
        "heft", "cpop": Topcuoglu, Hariri and Wu (2002), with insertion.
        "peft": Arabnejad and Barbosa (2014).
        "eft": the eager scheduler's decisions, in program order.
        "exact": the shortest possible, by branch and bound; for small graphs.

    Ties go to the lower task and device. Raises PlanningError, a ValueError, for an
    unknown policy, and for graphs too large for "exact".
    """
    found = POLICIES.get(policy) if isinstance(policy, str) else None
    if found is None:
        known = ", ".join(POLICIES)
        raise PlanningError(f"policy {policy!r} is unknown; there are {known}")
    if not isinstance(graph, TaskGraph):
        raise PlanningError(f"plan wants a TaskGraph, not {type(graph).__name__}")
    return found(graph)
