"""Ways to divide a product [m, k] @ [k, n] among equal devices with links of their own,
whose operands are at home."""

import math

from xpurt_tools.simulation.divided_ops import FLOAT
from xpurt_tools.simulation.machine import SimulatedDevice

FORMS = ("one device", "rows", "blocks", "inner")


def product_forms(
    m: int,
    n: int,
    k: int,
    device: SimulatedDevice,
    count: int,
    *,
    resident: bool = False,
    by_inner_rows: bool = False,
) -> dict[str, float]:
    """Microseconds of each form on `count` devices, home included.

    rows: each device reads its rows of the first operand, and all of the second one.
    blocks: the devices are a grid; each reads a block of rows and a block of columns.
        Columns are no range of bytes, so home first packs them.
    inner: each device reads columns of the first operand, which home packs, and rows of
        the second one, and computes a partial sum of the whole result. Home adds them.

    resident: the second operand is on all devices, as a weight; a block of it is too.
    by_inner_rows: the operands of "inner" were left on the devices by divided ops, in
        the same rows. That is the case for the gradient of a weight: both operands have
        a row per sample of the batch, and the first one is transposed.
    """
    first, second, result = FLOAT * m * k, FLOAT * k * n, FLOAT * m * n
    work = device.launch_us + 2.0 * m * n * k / device.flops_per_us
    share = device.launch_us + (work - device.launch_us) / count
    across = max(d for d in range(1, math.isqrt(count) + 1) if count % d == 0)
    down = count // across
    second_moved = 0.0 if resident else second

    def sent(size_bytes: float) -> float:
        if size_bytes <= 0 or count == 1:
            return 0.0
        return 2 * device.link_us + size_bytes / device.link_bytes_per_us

    def packed(size_bytes: float) -> float:
        """Reading and writing at home, for the other devices."""
        if size_bytes <= 0:
            return 0.0
        others = size_bytes * (count - 1) / count
        return device.launch_us + 2 * others / device.bytes_per_us

    inner_moved = 0.0 if by_inner_rows else (first + second) / count
    return {
        "one device": work,
        "rows": share + sent(first / count + second_moved),
        "blocks": share
        + sent(first / down + second_moved / across)
        + packed(second_moved if across > 1 else 0.0),
        "inner": share
        + sent(inner_moved)
        + packed(0.0 if by_inner_rows else first)
        + sent(result)
        + (count - 1) * (device.launch_us + 3 * result / device.bytes_per_us),
    }
