"""What ran where: counts of the extension per op, tier and device."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from xpurt import _C
from xpurt.arguments import check_flag
from xpurt.text.notebook import ShownInNotebooks
from xpurt.text.table import html_table, size, table


@dataclass(frozen=True, slots=True)
class OpRow:
    """The calls of one op on one tier and one physical device.

    op: aten name with its overload.
    tier: "sycl" (xpurt's kernel on the device's queue), "onednn" (a oneDNN primitive on
        it), "native" (PyTorch's CPU kernel on the same bytes) or "copy" (the same
        kernel on copies of the bytes). On a prototype device: "alias" (the kernel of the
        device behind it) or "vendor" (the vendor's own). Of a graph of lazy tensors: its
        form, "op by op" or "compiled".
    device: the physical device, the type of a prototype, or the ordinal of a lazy graph.
    bytes_copied: bytes copied between the device and the host, for "copy".
    time_ms: the host's time in these calls. A kernel that is only submitted runs on
        after its call returns. On a prototype device, and of a lazy graph, it has the
        time of the ops that are called within.
    """

    op: str
    tier: str
    device: str
    calls: int
    bytes_copied: int
    time_ms: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """What one physical device did, in an ordinal of several devices.

    ops, time_ms: calls of ops on the device, and the host's time in them.
    bytes_moved: bytes of operands copied between the device and the home device; 0 for
        the home device.
    split_ops: ops of which the device computed a shard.
    busy_ms: the predicted time of the ops for which the device was chosen.
    gained_ms: by how much the choice of the device for these ops has put the end of all
        ops before the end of the best device alone, as predicted; negative: a loss.
    timed, predicted_ms, measured_ms: the calls that the scheduler learned from, their
        predicted time, and their measured time.
    bytes_evicted: bytes of copies that the device had no room for any more.
    """

    device: str
    ops: int
    time_ms: float
    bytes_moved: int
    split_ops: int
    busy_ms: float
    gained_ms: float
    timed: int
    predicted_ms: float
    measured_ms: float
    bytes_evicted: int = 0


@dataclass(frozen=True, slots=True)
class OpReport(ShownInNotebooks):
    """Rows by time, the longest first. ``str()`` gives a table, and a second one of the
    devices if an ordinal has several; a notebook shows the same.

    devices: one row per device of such an ordinal; empty if no device was chosen.
    """

    rows: tuple[OpRow, ...]
    devices: tuple[DeviceRow, ...] = ()

    def __iter__(self) -> Iterator[OpRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        ops = table(_OP_HEADINGS, self._cells())
        if not self.devices:
            return ops
        return f"{ops}\n\n{devices_table(self.devices)}"

    def _repr_html_(self) -> str:
        ops = html_table(_OP_HEADINGS, self._cells())
        if not self.devices:
            return ops
        return ops + html_table(_DEVICE_HEADINGS, _device_cells(self.devices))

    def _cells(self) -> Iterator[tuple[str, ...]]:
        return (
            (
                row.op,
                row.tier,
                row.device,
                f"{row.calls:,}",
                size(row.bytes_copied) if row.bytes_copied else "",
                f"{row.time_ms:.2f}",
            )
            for row in self.rows
        )


_OP_HEADINGS = ("op", "tier", "device", ">calls", ">copied", ">host ms")
_DEVICE_HEADINGS = (
    "device",
    ">ops",
    ">host ms",
    ">moved",
    ">evicted",
    ">split",
    ">busy ms",
    ">gained ms",
    ">timed",
    ">predicted ms",
    ">measured ms",
)


def devices_table(rows: Iterable[DeviceRow]) -> str:
    """A table of what each device did, with predicted and measured times."""
    return table(_DEVICE_HEADINGS, _device_cells(rows))


def _device_cells(rows: Iterable[DeviceRow]) -> Iterator[tuple[str, ...]]:
    return (
        (
            row.device,
            f"{row.ops:,}",
            f"{row.time_ms:.1f}",
            size(row.bytes_moved),
            size(row.bytes_evicted),
            f"{row.split_ops:,}",
            f"{row.busy_ms:.1f}",
            f"{row.gained_ms:+.1f}",
            f"{row.timed:,}",
            f"{row.predicted_ms:.2f}",
            f"{row.measured_ms:.2f}",
        )
        for row in rows
    )


def op_report(*, reset: bool = False) -> OpReport:
    """The ops that ran on xpu, and on prototype devices, in this process since its start,
    or the last reset; and the graphs of lazy tensors.

    Of a prototype, it shows which ops the vendor has no kernel for yet: their tier is
    "alias". The vendor's kernels are counted if they were registered before
    `prototype_device()`, or before another call of it.

    reset: set all counts to 0 after this report.

    Raises TypeError if `reset` is neither True nor False.
    """
    check_flag("op_report(reset=)", reset)
    rows = [
        OpRow(op, tier, device, calls, size_bytes, seconds * 1e3)
        for op, tier, device, calls, size_bytes, seconds in _C.op_report()
    ]
    devices = _devices(rows)
    for more in _more_rows:
        rows += more(reset)
    if reset:
        _C.reset_op_report()
        _C.reset_device_report()
    rows.sort(key=lambda row: (-row.time_ms, row.op, row.tier, row.device))
    return OpReport(tuple(rows), devices)


_more_rows: list[Callable[[bool], list[OpRow]]] = []


def add_rows(rows: Callable[[bool], list[OpRow]]) -> None:
    """Reports also have what `rows(reset)` returns. reset: the counts begin anew."""
    _more_rows.append(rows)


def _devices(rows: Sequence[OpRow]) -> tuple[DeviceRow, ...]:
    return tuple(
        DeviceRow(
            device=device,
            ops=sum(row.calls for row in rows if row.device == device),
            time_ms=sum(row.time_ms for row in rows if row.device == device),
            bytes_moved=moved,
            split_ops=split,
            busy_ms=busy_us / 1e3,
            gained_ms=gained_us / 1e3,
            timed=timed,
            predicted_ms=predicted_us / 1e3,
            measured_ms=measured_us / 1e3,
            bytes_evicted=evicted,
        )
        for (
            device,
            _,
            moved,
            split,
            timed,
            predicted_us,
            measured_us,
            busy_us,
            gained_us,
            evicted,
        ) in (_C.device_report())
    )
