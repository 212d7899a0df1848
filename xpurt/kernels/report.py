"""What ran where: the counts that the extension keeps per op, tier and device."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xpurt import _C
from xpurt.arguments import check_flag
from xpurt.text.table import size, table


@dataclass(frozen=True, slots=True)
class OpRow:
    """The calls of one op on one tier and one physical device.

    op: aten name with its overload.
    tier: "sycl" (a kernel of ours on the device's queue), "onednn" (a primitive of
        oneDNN there), "native" (PyTorch's CPU kernel on the same bytes) or "copy" (the
        same on copies of the bytes).
    bytes_copied: between the device and the host, for "copy".
    time_ms: spent by the host in these calls; a kernel that is only submitted goes on
        after its call.
    """

    op: str
    tier: str
    device: str
    calls: int
    bytes_copied: int
    time_ms: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """What one physical device of an ordinal of several did.

    ops, time_ms: calls of ops that ran there, and the host's time in them.
    bytes_moved: copies of operands between this device and the home device, counted
        here if this is not that one.
    split_ops: ops of which it computed a part.
    busy_ms: the time of the ops that it was chosen for, as predicted.
    timed, predicted_ms, measured_ms: the calls that the scheduler learned from, what it
        predicted of them, and what they took.
    """

    device: str
    ops: int
    time_ms: float
    bytes_moved: int
    split_ops: int
    busy_ms: float
    timed: int
    predicted_ms: float
    measured_ms: float


@dataclass(frozen=True, slots=True)
class OpReport:
    """Rows by time, the longest first; ``str()`` of it is a table, and one more where
    several devices work behind one ordinal.

    devices: a row for each of these; empty where no choice of a device was made.
    """

    rows: tuple[OpRow, ...]
    devices: tuple[DeviceRow, ...] = ()

    def __iter__(self) -> Iterator[OpRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        cells = (
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
        ops = table(("op", "tier", "device", ">calls", ">copied", ">host ms"), cells)
        if not self.devices:
            return ops
        return f"{ops}\n\n{devices_table(self.devices)}"


def devices_table(rows: Iterable[DeviceRow]) -> str:
    """What each device did, and how well it was predicted."""
    cells = (
        (
            row.device,
            f"{row.ops:,}",
            f"{row.time_ms:.1f}",
            size(row.bytes_moved),
            f"{row.split_ops:,}",
            f"{row.busy_ms:.1f}",
            f"{row.timed:,}",
            f"{row.predicted_ms:.2f}",
            f"{row.measured_ms:.2f}",
        )
        for row in rows
    )
    headings = (
        "device",
        ">ops",
        ">host ms",
        ">moved",
        ">split",
        ">busy ms",
        ">timed",
        ">predicted ms",
        ">measured ms",
    )
    return table(headings, cells)


def op_report(*, reset: bool = False) -> OpReport:
    """The ops that ran on xpu in this process, since the start or the last reset.

    reset: start counting anew after this report.

    Raises TypeError if `reset` is neither True nor False.
    """
    check_flag("op_report(reset=)", reset)
    rows = [
        OpRow(op, tier, device, calls, size_bytes, seconds * 1e3)
        for op, tier, device, calls, size_bytes, seconds in _C.op_report()
    ]
    devices = _devices(rows)
    if reset:
        _C.reset_op_report()
        _C.reset_device_report()
    rows.sort(key=lambda row: (-row.time_ms, row.op, row.tier, row.device))
    return OpReport(tuple(rows), devices)


def _devices(rows: Sequence[OpRow]) -> tuple[DeviceRow, ...]:
    return tuple(
        DeviceRow(
            device=device,
            ops=sum(row.calls for row in rows if row.device == device),
            time_ms=sum(row.time_ms for row in rows if row.device == device),
            bytes_moved=moved,
            split_ops=split,
            busy_ms=busy_us / 1e3,
            timed=timed,
            predicted_ms=predicted_us / 1e3,
            measured_ms=measured_us / 1e3,
        )
        for device, _, moved, split, timed, predicted_us, measured_us, busy_us in (
            _C.device_report()
        )
    )
