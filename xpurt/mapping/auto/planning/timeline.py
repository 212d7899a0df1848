"""The idle times of a device, for inserting tasks between others."""

from bisect import bisect_left, bisect_right

INFINITY = float("inf")


class Timeline:
    """Idle times in order; the last one never ends."""

    def __init__(self) -> None:
        self._begins = [0.0]
        self._ends = [INFINITY]

    @property
    def first_idle(self) -> float:
        return self._begins[0]

    @property
    def last_idle(self) -> float:
        return self._begins[-1]

    def earliest(self, ready_at: float, cost: float) -> float:
        """The earliest start of a task, between others if it fits."""
        begins, ends = self._begins, self._ends
        # Idle times that end earlier are too short.
        for place in range(bisect_left(ends, ready_at + cost), len(ends)):
            start = max(begins[place], ready_at)
            if start + cost <= ends[place]:
                return start
        raise AssertionError("the last idle time never ends")

    def take(self, start: float, finish: float) -> None:
        """Occupies this time with a task; `start` comes from `earliest`. A task of
        length 0 splits the idle time, so that no later task spans it."""
        place = bisect_right(self._begins, start) - 1
        begin, end = self._begins[place], self._ends[place]
        left = [(begin, start)] if begin < start else []
        right = [(finish, end)] if finish < end else []
        self._begins[place : place + 1] = [each[0] for each in left + right]
        self._ends[place : place + 1] = [each[1] for each in left + right]
