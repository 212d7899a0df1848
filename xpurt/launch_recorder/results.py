"""Compares what a launch wrote with what was recorded.

The program that replays launches imports this by its path, so it needs nothing of xpurt.
"""

import math
import struct
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from xpurt.launch_recorder.launches import Allocation
else:
    from launches import Allocation

Difference = Literal["", "rounded", "other"]

FORMATS: Final = {"float": "f", "double": "d"}
# Of the largest number of an allocation. Devices round sums of products and functions
# in different ways.
TOLERANCE: Final = 1e-5


def start_of(recorded: Allocation) -> bytes:
    """What a replay begins with. Where nothing wrote anything no byte is the right one, so
    that one which the kernel leaves out is seen."""
    if recorded.is_written:
        return recorded.before
    return bytes(each ^ 0xFF for each in recorded.after)


def difference(
    recorded: Allocation, start: bytes, end: bytes, element: str
) -> Difference:
    """Of the bytes that the recorded launch or this one wrote; the others differ where
    nothing wrote them before. element: the type of numbers in OpenCL C; those of FORMATS
    may be rounded."""
    expected = _expected(recorded, start, end)
    if end == expected:
        return ""
    letter = FORMATS.get(element)
    if letter is None:
        return "other"
    count = len(end) // struct.calcsize(letter)
    whole = count * struct.calcsize(letter)
    wanted = struct.unpack(f"{count}{letter}", expected[:whole])
    found = struct.unpack(f"{count}{letter}", end[:whole])
    largest = max((abs(each) for each in wanted if math.isfinite(each)), default=0)
    is_rounded = end[whole:] == expected[whole:] and all(
        one == two
        or abs(one - two) <= TOLERANCE * largest
        or (one != one and two != two)
        for one, two in zip(wanted, found, strict=True)
    )
    return "rounded" if is_rounded else "other"


def _expected(recorded: Allocation, start: bytes, end: bytes) -> bytes:
    """The recorded bytes, and those of `end` where nothing wrote anything."""
    if recorded.is_written or end == recorded.after:
        return recorded.after
    rows = zip(recorded.before, recorded.after, start, end, strict=True)
    return bytes(
        now if before == after and begun == now else after
        for before, after, begun, now in rows
    )
