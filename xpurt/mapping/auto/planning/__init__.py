"""Plans for graphs of tasks that are known as a whole. Pure: uses no device."""

from xpurt.mapping.auto.planning.eft import online_policy
from xpurt.mapping.auto.planning.parents_first import parents_first
from xpurt.mapping.auto.planning.plan import POLICIES, plan
from xpurt.mapping.auto.planning.prices import device_prices
from xpurt.mapping.auto.planning.ranks import upward_ranks
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph
from xpurt.mapping.auto.planning.timeline import Timeline

__all__ = [
    "POLICIES",
    "Schedule",
    "TaskGraph",
    "Timeline",
    "device_prices",
    "online_policy",
    "parents_first",
    "plan",
    "upward_ranks",
]
