"""The demo's output: the mapping, the epochs, the speed, and the devices of the ops."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from xpurt.demo.training import Epoch, History
from xpurt.text.table import size, table


class OpRow(Protocol):
    """The part of a row of `xpurt.op_report()` that the demo reads."""

    @property
    def op(self) -> str: ...
    @property
    def tier(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def bytes_copied(self) -> int: ...
    @property
    def time_ms(self) -> float: ...


@dataclass(frozen=True)
class Share:
    """The ops that one tier ran on one device."""

    device: str
    tier: str
    ops: int
    calls: int
    bytes_copied: int
    time_ms: float


def shares(rows: Iterable[OpRow]) -> list[Share]:
    """The rows of an op report summed per device and tier, most calls first."""
    groups: dict[tuple[str, str], list[OpRow]] = defaultdict(list)
    for row in rows:
        groups[row.device, row.tier].append(row)
    sums = [
        Share(
            device,
            tier,
            ops=len({row.op for row in group}),
            calls=sum(row.calls for row in group),
            bytes_copied=sum(row.bytes_copied for row in group),
            time_ms=sum(row.time_ms for row in group),
        )
        for (device, tier), group in groups.items()
    ]
    return sorted(sums, key=lambda share: share.calls, reverse=True)


def shares_table(parts: list[Share]) -> str:
    calls = sum(part.calls for part in parts) or 1
    return table(
        ("device", "tier", ">ops", ">calls", ">share", ">copied", ">time"),
        (
            (
                part.device,
                part.tier,
                part.ops,
                part.calls,
                f"{part.calls / calls:.1%}",
                size(part.bytes_copied),
                f"{part.time_ms:.1f} ms",
            )
            for part in parts
        ),
    )


def epoch_line(number: int, epochs: int, epoch: Epoch) -> str:
    return (
        f"epoch {number:{len(str(epochs))}}/{epochs}  loss {epoch.loss:.4f}  "
        f"test accuracy {epoch.accuracy:.1%}  {epoch.images_per_s:,.0f} images/s"
    )


def speed_table(histories: Iterable[History]) -> str:
    return table(
        ("device", ">images/s", ">loss", ">test accuracy"),
        (
            (
                history.device,
                f"{history.images_per_s:,.0f}",
                f"{history.epochs[-1].loss:.4f}",
                f"{history.epochs[-1].accuracy:.1%}",
            )
            for history in histories
        ),
    )
