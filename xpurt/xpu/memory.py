"""Limits and snapshots of the allocator, in the form that ``torch.xpu`` requires."""

from typing import Any

from xpurt import _C


def set_memory_fraction(fraction: float, device: int) -> None:
    """Limits this process to a fraction, 0 to 1, of the memory of xpu:`device`.

    Raises ValueError if the fraction is outside of this range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"invalid fraction: {fraction}. A fraction of the memory is between 0 and 1."
        )
    _C.set_memory_fraction(device, fraction)


def memory_snapshot(pool: tuple[int, int] | None) -> dict[str, Any]:
    """The segments of a pool with their blocks, and the history of every device.

    pool: the id of a `torch.xpu.MemPool`; None or (0, 0) selects all pools.
    """
    return _C.memory_snapshot_with_traces(pool or (0, 0))
