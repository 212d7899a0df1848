"""What rows computed for CPU tensors."""

from collections.abc import Callable

import xpurt

Ran = Callable[[], set[str]]  # the ops, since the start of the test


def rows_taken() -> set[str]:
    return {row.op for row in xpurt.op_report().rows if row.device == "cpu"}
