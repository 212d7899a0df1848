"""docs/measured/accuracy.md has the bounds that the rows have."""

from kernels.accuracy_page import PAGE, SECTION, lines


def test_the_table_is_that_of_the_rows() -> None:
    """If not: cd tests && python -m kernels.accuracy_page."""
    assert SECTION.of(PAGE.read_text()).splitlines() == lines()
