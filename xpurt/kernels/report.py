"""What ran where: the counts that the extension keeps per op, tier and device."""

from collections.abc import Iterator
from dataclasses import dataclass

from xpurt import _C
from xpurt.table import size, table


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
class OpReport:
    """Rows by time, the longest first; ``str()`` of it is a table."""

    rows: tuple[OpRow, ...]

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
        return table(("op", "tier", "device", ">calls", ">copied", ">host ms"), cells)


def op_report(*, reset: bool = False) -> OpReport:
    """The ops that ran on xpu in this process, since the start or the last reset.

    reset: start counting anew after this report.
    """
    rows = [
        OpRow(op, tier, device, calls, size_bytes, seconds * 1e3)
        for op, tier, device, calls, size_bytes, seconds in _C.op_report()
    ]
    if reset:
        _C.reset_op_report()
    rows.sort(key=lambda row: (-row.time_ms, row.op, row.tier, row.device))
    return OpReport(tuple(rows))
