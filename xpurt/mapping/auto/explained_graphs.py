"""The form in which each compiled graph of an explained call ran."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FormTimes:
    """Microseconds of a call. measured_us: of timed calls; None: there are too few."""

    expected_us: float
    measured_us: float | None

    def __str__(self) -> str:
        if self.measured_us is None:
            return f"{self.expected_us:,.0f} us expected"
        return f"{self.measured_us:,.0f} us measured"


@dataclass(frozen=True, slots=True)
class ExplainedGraph:
    """A compiled graph in two forms. form: the one that ran: "native code" or
    "kernels"."""

    form: str
    native: FormTimes
    kernels: FormTimes

    @property
    def sentence(self) -> str:
        """What ran, and what is known about both forms."""
        return (
            f"compiled graph ran as {self.form}: native code {self.native}, "
            f"kernels {self.kernels}."
        )


# A list for each explanation that is underway, of graphs of all threads.
_underway: list[list[ExplainedGraph]] = []


def is_explaining() -> bool:
    """Whether graphs have to be recorded."""
    return bool(_underway)


def explain_graph(graph: ExplainedGraph) -> None:
    """Records that a graph runs."""
    for each in _underway:
        each.append(graph)


@contextmanager
def explained_graphs() -> Iterator[list[ExplainedGraph]]:
    """The list of the graphs that run within it."""
    graphs: list[ExplainedGraph] = []
    _underway.append(graphs)
    try:
        yield graphs
    finally:
        # Lists are equal by their contents, and this one is removed, not an equal one.
        _underway[:] = [each for each in _underway if each is not graphs]
