"""The tiers that ops used."""

import xpurt
from xpurt import _C


def tiers_of(op: str) -> dict[str, int]:
    """Calls of the op per tier since the last call; resets all counts."""
    found: dict[str, int] = {}
    for row in xpurt.op_report(reset=True):
        if row.op == op:
            found[row.tier] = found.get(row.tier, 0) + row.calls
    return found


def bucket_of(op: str, log2: int) -> tuple[str, str]:
    """Tier by the table, and tier in use, of float32 operands of that size."""
    ((*_, by_table, in_use, _, _),) = [
        row for row in _C.testing.learned_tiers() if row[0] == op and row[4] == log2
    ]
    return by_table, in_use


def calls_to_next_sample(op: str, log2: int) -> int:
    """Until the learner times a call of float32 operands of that size."""
    (row,) = [r for r in _C.testing.learned_tiers() if r[0] == op and r[4] == log2]
    return row[5]
