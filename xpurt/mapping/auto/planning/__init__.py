"""Plans for graphs of tasks that are known as a whole. Pure: touches no device."""

from xpurt.mapping.auto.planning.plan import POLICIES, plan
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph

__all__ = ["POLICIES", "Schedule", "TaskGraph", "plan"]
