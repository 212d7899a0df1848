"""The work of each physical queue over time: as a Chrome trace, and as a picture."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xpurt.arguments import check_type

KERNEL_COLOR = "#2a6fbb"
COPY_COLOR = "#c8553d"
GRAPH_COLOR = "#7a9e5f"
ROW_HEIGHT = 0.5  # inches
WIDTH = 12


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of one stream on one physical device. `name`: the device's name."""

    name: str
    physical_device: int
    stream: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A kernel or a copy. Times in microseconds from the first one on."""

    name: str
    queue: Queue
    start_us: float
    end_us: float
    copied_bytes: int = 0

    @property
    def is_copy(self) -> bool:
        return self.copied_bytes > 0


@dataclass(frozen=True, slots=True)
class GraphRun:
    """A run of a graph of lazy tensors, while the host submits it. `name`: as "lazy graph
    3 of 71 ops, compiled". Times in microseconds from the first piece on."""

    name: str
    start_us: float
    end_us: float


@dataclass(slots=True)
class Timeline:
    """Filled when its ``with`` ends. `trace`: PyTorch's Chrome trace of the work."""

    pieces: tuple[Piece, ...] = ()
    trace: dict[str, Any] = field(default_factory=dict, repr=False)
    graphs: tuple[GraphRun, ...] = ()

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The queues that had work, in the order of their devices."""
        found = {piece.queue for piece in self.pieces}
        return tuple(sorted(found, key=lambda q: (q.physical_device, q.stream)))

    def busy_us(self, queue: Queue) -> float:
        return sum(p.end_us - p.start_us for p in self.pieces if p.queue == queue)

    def save(self, path: str | Path) -> None:
        """Writes a Chrome trace for the suffix ``.json`` (for chrome://tracing, or
        Perfetto), else a picture: a row per queue, its kernels and copies, and a line
        from each copy to the device at its other end; and a row of the graphs of lazy
        tensors.

        Raises ModuleNotFoundError without matplotlib, ValueError for a suffix that
        matplotlib does not know, and OSError.
        """
        path = Path(path)
        if path.suffix == ".json":
            path.write_text(json.dumps(self.trace))
        else:
            _draw(self, path)


@contextmanager
def timeline(path: str | Path | None = None) -> Iterator[Timeline]:
    """Records the work of the devices inside of the ``with``::

        with xpurt.timeline("step.png") as found:
            step()
        found.save("step.json")

    path: the timeline is saved there at the end, unless the block raises. Work is
    recorded on queues with profiling, so each submission takes some microseconds
    longer.

    Raises NotImplementedError on a build of PyTorch with CUDA. A `path` to which
    `Timeline.save` could not write raises the same errors as that, before the block.
    """
    if path is not None:
        _check_path(path)
    import torch  # the profiler comes with much that a first import need not load
    from torch.profiler import ProfilerActivity, profile

    if torch.cuda._is_compiled():
        raise NotImplementedError(
            "a timeline of xpu was requested, and this PyTorch has CUDA compiled in: in its "
            "profiles the work of xpu could not be told from CUDA's. A build of PyTorch "
            "for the CPU has timelines; xpurt.op_report() says where ops ran on any."
        )
    made = Timeline()
    torch.xpu.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
        yield made
        torch.xpu.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        made.trace = json.loads(file.read_text())
    made.pieces = pieces_of(made.trace)
    made.graphs = graphs_of(made.trace)
    if path is not None:
        made.save(path)


def _check_path(path: str | Path) -> None:
    """Checks before recording, since an error at the end would lose the recording."""
    check_type(
        "timeline()", path, str | Path, "the path of a file", 'Give one as "step.png".'
    )
    file = Path(path)
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"timeline() wants to write {file}; found no folder {file.parent}. Make it "
            "first, or give another one."
        )
    if file.suffix == ".json":
        return
    from matplotlib.figure import Figure  # optional, and slow to import

    known = Figure().canvas.get_supported_filetypes()
    if file.suffix[1:].lower() not in known:
        raise ValueError(
            f"timeline() wants a .json or a picture; found {file.name}. Pictures end in "
            f".{', .'.join(sorted(known))}."
        )


def pieces_of(trace: dict[str, Any]) -> tuple[Piece, ...]:
    """The work of xpu's queues in a Chrome trace, in order of time."""
    events: Sequence[dict[str, Any]] = trace.get("traceEvents", [])
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event.get("name") == "thread_name"
    }
    begin = _begin_of(trace)
    pieces = []
    for event in _work_in(trace):
        args = event["args"]
        shown = names.get((event["pid"], event["tid"]), f"queue {event['tid']}")
        queue = Queue(
            str(shown).rpartition(", stream ")[0] or str(shown),
            int(args["physical device"]),
            int(args["stream"]),
        )
        start = float(event["ts"]) - begin
        pieces.append(
            Piece(
                event["name"],
                queue,
                start,
                start + float(event.get("dur", 0)),
                int(args.get("bytes", 0)),
            )
        )
    return tuple(sorted(pieces, key=lambda piece: piece.start_us))


def graphs_of(trace: dict[str, Any]) -> tuple[GraphRun, ...]:
    """The runs of graphs of lazy tensors in a Chrome trace, in order of time."""
    begin = _begin_of(trace)
    found = [
        GraphRun(
            event["name"],
            float(event["ts"]) - begin,
            float(event["ts"]) - begin + float(event.get("dur", 0)),
        )
        for event in trace.get("traceEvents", [])
        if event.get("cat") == "user_annotation"
        and event["name"].startswith("lazy graph ")
    ]
    return tuple(sorted(found, key=lambda run: run.start_us))


def _work_in(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of xpu's queues."""
    events = trace.get("traceEvents", [])
    return [event for event in events if "physical device" in event.get("args", {})]


def _begin_of(trace: dict[str, Any]) -> float:
    return min((float(event["ts"]) for event in _work_in(trace)), default=0.0)


def _draw(shown: Timeline, path: Path) -> None:
    from matplotlib.figure import Figure  # optional, and slow to import

    queues = shown.queues
    titles = [f"{q.name[:32]}, stream {q.stream}" for q in queues]
    if shown.graphs:
        titles.append("lazy graphs (host)")
    figure = Figure(
        figsize=(WIDTH, 1.2 + ROW_HEIGHT * len(titles)), layout="constrained"
    )
    axes = figure.subplots()
    rows = {queue: row for row, queue in enumerate(queues)}
    for kind, color in (("kernels", KERNEL_COLOR), ("copies", COPY_COLOR)):
        for queue, row in rows.items():
            bars = [
                (piece.start_us / 1e3, (piece.end_us - piece.start_us) / 1e3)
                for piece in shown.pieces
                if piece.queue == queue and piece.is_copy == (kind == "copies")
            ]
            axes.broken_barh(bars, (row - 0.35, 0.7), facecolors=color)
        axes.plot([], [], color=color, linewidth=6, label=kind)
    for piece in shown.pieces:
        other = _other_end(piece, queues)
        if piece.is_copy and other is not None:
            top, bottom = sorted((rows[piece.queue], rows[other]))
            at = (piece.start_us + piece.end_us) / 2e3
            axes.vlines(at, top, bottom, colors=COPY_COLOR, linewidth=0.8)
    _draw_graphs(axes, shown.graphs, len(queues))
    axes.set(xlabel="ms", ylim=(max(len(titles), 1) - 0.5, -0.5))
    axes.set_yticks(range(len(titles)), titles)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(path, dpi=120)


def _draw_graphs(axes: Any, graphs: Sequence[GraphRun], row: int) -> None:
    for each in graphs:
        start_ms, took_ms = each.start_us / 1e3, (each.end_us - each.start_us) / 1e3
        axes.broken_barh(
            [(start_ms, took_ms)],
            (row - 0.35, 0.7),
            facecolors=GRAPH_COLOR,
            edgecolors="white",
        )
        number = each.name.removeprefix("lazy graph ").partition(" ")[0]
        axes.text(start_ms, row, f" {number}", va="center", fontsize=7, clip_on=True)


def _other_end(piece: Piece, queues: Sequence[Queue]) -> Queue | None:
    """The queue of the same stream on another device; None if only one had work."""
    others = [q for q in queues if q.physical_device != piece.queue.physical_device]
    same = [q for q in others if q.stream == piece.queue.stream]
    return next(iter(same or others), None)
