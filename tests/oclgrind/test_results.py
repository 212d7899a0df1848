"""Which differences of what launches wrote are found."""

import struct
import sys
from pathlib import Path

import pytest

from xpurt.launch_recorder import SIMULATOR
from xpurt.launch_recorder.launches import Allocation
from xpurt.testing.kernels import without_repeats

sys.path.insert(0, str(SIMULATOR.parent))  # it imports what is beside it
from results import difference


def floats(*numbers: float) -> bytes:
    return struct.pack(f"{len(numbers)}f", *numbers)


def recorded(after: bytes, before: bytes = b"", is_written: bool = True) -> Allocation:
    return Allocation(len(after), is_written, before or bytes(len(after)), after)


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((1, 100), ""),
        ((1.0001, 100), "rounded"),
        ((1.01, 100), "other"),
        ((float("nan"), 100), "other"),
    ],
)
def test_rounding(numbers: tuple[float, float], found: str) -> None:
    memory = recorded(floats(1, 100))
    assert difference(memory, bytes(8), floats(*numbers), "float") == found


def test_complex_numbers_are_rounded_by_part() -> None:
    memory = recorded(floats(1, 100, 0, 0))
    ends = floats(1.0001, 100, 0, 0), floats(1.01, 100, 0, 0)
    found = [difference(memory, bytes(16), end, "float2") for end in ends]
    assert found == ["rounded", "other"]


def test_what_is_left_where_all_cancels() -> None:
    memory = recorded(floats(0, 0))
    ends = floats(4e-17, 0), floats(1e-14, 0)
    found = [difference(memory, bytes(8), end, "float") for end in ends]
    assert found == ["rounded", "other"]


def test_a_number_is_written_as_a_whole() -> None:
    """Some of its bytes were there before, in the process and in the simulator."""
    memory = recorded(
        struct.pack("<I", 0xBF7FFFFF), struct.pack("<I", 0xBF7F0000), is_written=False
    )
    start, end = struct.pack("<I", 0xBF801234), struct.pack("<I", 0xBF800000)
    assert difference(memory, start, end, "float") == "rounded"


def test_whole_numbers_are_not_rounded() -> None:
    memory = recorded(struct.pack("q", 1 << 40))
    assert difference(memory, bytes(8), struct.pack("q", (1 << 40) + 1), "long") == (
        "other"
    )


def test_nan_and_infinity_are_themselves() -> None:
    memory = recorded(floats(float("inf"), float("nan")))
    end = struct.pack("fI", float("inf"), 0x7FC00001)
    assert difference(memory, bytes(8), end, "float") == "rounded"
    assert difference(memory, bytes(8), floats(1, 1), "float") == "other"


@pytest.mark.parametrize(
    ("end", "same"),
    [
        (b"\5\7", True),  # the second byte is not written
        (b"\5\2", False),  # it is, here
        (b"\7\7", False),  # the first is not
    ],
)
def test_memory_that_nothing_wrote(end: bytes, same: bool) -> None:
    memory = recorded(b"\5\1", b"\0\1", is_written=False)
    assert (difference(memory, b"\7\7", end, "") == "") == same


HEADER = "kernel copy\nsizes 1 0 0 0 8 1 1 4 1 1\nmemory 0 0\nallocation 8 1\nend\n"


def test_repeats_are_left_out(tmp_path: Path) -> None:
    """Launches that differ in what is in memory alone."""
    other = HEADER.replace("0 8 1 1", "0 4 1 1")
    for number, (header, byte) in enumerate(
        [(HEADER, b"a"), (HEADER, b"b"), (other, b"a"), (HEADER, b"c")]
    ):
        launch = tmp_path / f"{number}.launch"
        launch.write_bytes(header.encode() + byte * 16)
    paths = sorted(tmp_path.iterdir())

    def kept(most: int) -> list[str]:
        return [each.stem for each in without_repeats(paths, most)]

    assert kept(1) == ["0", "2"]
    assert kept(2) == ["0", "1", "2"]
