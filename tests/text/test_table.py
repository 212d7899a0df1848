import pytest

from xpurt.text.table import size, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(("name", ">calls"), [("add", 5), ("softmax", 12345)]) == (
        "name     calls\n"
        "-------  -----\n"
        "add          5\n"
        "softmax  12345"
    )  # fmt: skip


def test_a_table_without_rows_is_its_head() -> None:
    assert table(("a", ">b"), []) == "a  b\n-  -"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 columns got the row"):
        table(("a", "b"), [("only one",)])


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (16 * 2**30, "16.0 GiB"),
        (3 * 2**40, "3.0 TiB"),
        (5000 * 2**40, "5000.0 TiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_sizes_have_binary_units(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text
