"""Limits and snapshots of the allocator, in the form that ``torch.xpu`` requires."""

from typing import Any

from xpurt import _C
from xpurt.mapping import current_placement

_COUNTS = ("resident", "moved_to", "moved_from", "evicted")


def set_memory_fraction(fraction: float, device: int) -> None:
    """Limits this process to a fraction, 0 to 1, of the memory of xpu:`device`.

    Raises ValueError if the fraction is outside of this range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"invalid fraction: {fraction}. A fraction of the memory is between 0 and 1."
        )
    _C.set_memory_fraction(device, fraction)


def memory_stats(device: int) -> dict[str, Any]:
    """The counts of the allocator of xpu:`device`.

    On an ordinal of several devices it is that of the home device. Then
    "replica_bytes" has the other devices: what copies hold there now, and what was
    copied and evicted since the process began.
    """
    counts: dict[str, Any] = _C.memory_stats(device)
    index = device if device >= 0 else _C.current_device()
    placement = current_placement()
    if len(placement.ordinals[index]) > 1:
        found = zip(placement.ordinals[index], _C.replica_counts(index), strict=True)
        counts["replica_bytes"] = {
            each.filter_string: dict(zip(_COUNTS, bytes_of, strict=True))
            for position, (each, bytes_of) in enumerate(found)
            if position != placement.homes[index]
        }
    return counts


def memory_snapshot(pool: tuple[int, int] | None) -> dict[str, Any]:
    """The segments of a pool with their blocks, and the history of every device.

    pool: the id of a `torch.xpu.MemPool`; None or (0, 0) selects all pools.
    """
    return _C.memory_snapshot_with_traces(pool or (0, 0))
