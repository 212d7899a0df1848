"""The graphs that were compiled, or could not be, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from xpurt.lazy.traced_graph import NumberValue
from xpurt.text.notebook import ShownInNotebooks
from xpurt.text.table import table


@dataclass(frozen=True, slots=True)
class Compilation:
    """A traced graph that was compiled, or the reason why it was not."""

    graph: str  # as "lazy graph 3 of 71 ops"
    nodes: int
    seconds: float
    reason: str  # why it was compiled then
    sizes: str  # "exact", "symbolic", or "exact: " and why not symbolic
    shapes: tuple[str, ...]  # of the parameters, as "float32[s0, 20]" with a symbol s0
    bounds: dict[str, tuple[int, int | None]]  # of each symbol; None: any larger size
    constants: dict[int, NumberValue]  # numbers of the program, by parameter
    error: str  # "": it was compiled
    text: str  # TorchScript
    code: str  # what the compiler generated; "": nothing


@dataclass(frozen=True, slots=True)
class Compilations(ShownInNotebooks):
    """In their order. ``str()`` gives a table."""

    rows: tuple[Compilation, ...]

    def __iter__(self) -> Iterator[Compilation]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Compilation:
        return self.rows[place]

    def __str__(self) -> str:
        cells = (
            (
                each.graph,
                f"{each.seconds:.1f}",
                each.reason,
                each.sizes,
                each.error or "compiled",
            )
            for each in self.rows
        )
        return table(("graph", ">seconds", "why then", "sizes", "result"), cells)


def why_now(runs: int, run_us: float) -> str:
    """Why a graph is compiled after `runs` runs, of which one takes `run_us`; 0: not
    timed. See Note [When a graph is compiled] in csrc/lazy/graph.h."""
    if run_us == 0:
        return 'before its runs pay for it: init(compile="always")'
    return (
        f"{runs:,} runs op by op of {run_us / 1e3:.3g} ms took as long as compiling was "
        "expected to take"
    )
