"""Limits and snapshots of the allocator, in the form that ``torch.xpu`` asks for."""

from typing import Any

from xpurt import _C
from xpurt.xpu import pools


def set_memory_fraction(fraction: float, device: int) -> None:
    """Limits this process to a share, 0 to 1, of the memory of xpu:`device`.

    Raises ValueError if the fraction is outside of it.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"invalid fraction: {fraction}. A fraction of the memory is between 0 and 1."
        )
    _C.set_memory_fraction(device, fraction)


def memory_snapshot(pool: tuple[int, int] | None) -> dict[str, Any]:
    """All segments of the allocator with their blocks; there are no traces.

    pool: None or (0, 0), the one pool there is. Raises NotImplementedError for others.
    """
    if pool not in (None, (0, 0)):
        pools.refuse_pool()
    return {"segments": _C.memory_snapshot(), "device_traces": []}
