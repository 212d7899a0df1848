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

FORMATS: Final = {"float": "f", "float2": "f", "double": "d", "double2": "d"}
# Of the largest number of an allocation. Devices round sums of products and functions
# in different ways, and where all cancel, something is left.
TOLERANCE: Final = 1e-5
SMALLEST: Final = 1e-10


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
    letter = FORMATS.get(element)
    expected = _expected(recorded, start, end, struct.calcsize(letter or "b"))
    if end == expected:
        return ""
    if letter is None:
        return "other"
    count = len(end) // struct.calcsize(letter)
    whole = count * struct.calcsize(letter)
    wanted = struct.unpack(f"{count}{letter}", expected[:whole])
    found = struct.unpack(f"{count}{letter}", end[:whole])
    finite = (abs(each) for each in wanted if math.isfinite(each))
    largest = max(finite, default=0.0)
    is_rounded = end[whole:] == expected[whole:] and all(
        one == two
        or abs(one - two) <= TOLERANCE * max(largest, SMALLEST)
        or (one != one and two != two)
        for one, two in zip(wanted, found, strict=True)
    )
    return "rounded" if is_rounded else "other"


def _expected(recorded: Allocation, start: bytes, end: bytes, size: int) -> bytes:
    """The recorded numbers of `size` bytes, and those of `end` where nothing wrote any."""
    if recorded.is_written or end == recorded.after:
        return recorded.after
    before, after = recorded.before, recorded.after
    found = bytearray(after)
    for begin in range(0, len(after), size):
        number = slice(begin, begin + size)
        if before[number] == after[number] and start[number] == end[number]:
            found[number] = end[number]
    return bytes(found)
