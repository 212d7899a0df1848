"""Machines, quiet and busy, for calibrations that tests run."""

from collections.abc import Iterable

from xpurt.calibration.noise import Spent, Watch


class QuietWatch(Watch):
    """Sees a machine that does nothing else, whatever it does."""

    def __init__(self) -> None:
        super().__init__(lambda: [Spent(1.0, 1.0)])

    def compare(self, times_us: Iterable[float]) -> None:
        super().compare([1.0, 1.0])


class BusyWatch(QuietWatch):
    """Sees one that has half of the processors' time for others."""

    def __init__(self) -> None:
        super().__init__()
        self._reference = lambda: [Spent(2.0, 1.0)]
