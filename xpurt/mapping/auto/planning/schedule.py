"""The result of planning: the device and the times of each task."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike

import numpy as np

from xpurt.mapping.auto.planning.gantt import save_gantt
from xpurt.mapping.auto.planning.task_graph import Floats, Integers, TaskGraph


@dataclass(frozen=True, eq=False)
class Schedule:
    """A plan. Arrays have one number per task.

    placement: devices.
    start, finish: times, in the unit of the graph's costs.
    """

    policy: str
    graph: TaskGraph = field(repr=False)
    placement: Integers
    start: Floats
    finish: Floats

    @property
    def makespan(self) -> float:
        """The finish of the last task; 0 for a graph without tasks."""
        return float(self.finish.max(initial=0.0))

    def plot(
        self, path: str | PathLike[str], devices: Sequence[str] | None = None
    ) -> None:
        """Draws a row per device. The suffix of `path` gives the format: gantt.png.

        devices: their names.

        Raises ModuleNotFoundError without matplotlib, OSError if `path` can't be
        written, and ValueError for a format that matplotlib does not write.
        """
        names, start, finish = (
            self.graph.names,
            self.start.tolist(),
            self.finish.tolist(),
        )
        rows = [
            [(names[task], start[task], finish[task]) for task in on.tolist()]
            for on in (
                np.flatnonzero(self.placement == device)
                for device in range(self.graph.devices)
            )
        ]
        save_gantt(path, rows, f"{self.policy}: makespan {self.makespan:,.6g}", devices)
