"""The tiers that ops used."""

import torch

import xpurt
from xpurt import _C

LARGE = 1 << 16  # elements: kernels may pay


def calls(op: str, count: int, size: int = LARGE) -> dict[str, int]:
    """Tiers of so many calls of a pointwise op."""
    x = torch.ones(size, device="xpu")
    _C.reset_op_report()
    for _ in range(count):
        getattr(x, op)()
    return tiers_of(f"aten::{op}")


def tiers_of(op: str) -> dict[str, int]:
    """Calls of the op per tier since the last call; resets all counts."""
    found: dict[str, int] = {}
    for row in xpurt.op_report(reset=True):
        if row.op == op:
            found[row.tier] = found.get(row.tier, 0) + row.calls
    return found


def tier_in_use(op: str, log2: int) -> str:
    """The tier that was learned for float32 operands of that size, on one device."""
    return ("kernel", "native")[_row(op, log2)[6]]


def calls_to_next_sample(op: str, log2: int) -> int:
    """Until a call of float32 operands of that size is a timed sample."""
    return _row(op, log2)[5]


def is_learned(op: str) -> bool:
    """Whether any call of the op was timed."""
    return any(row[0] == op for row in _C.testing.learned_calls())


def _row(
    op: str, log2: int
) -> tuple[str, int, str, str, int, int, int, list[int], list[float]]:
    (row,) = [r for r in _C.testing.learned_calls() if r[0] == op and r[4] == log2]
    return row
