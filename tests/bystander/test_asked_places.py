"""asked_places.md has each place of PyTorch that asks whether an xpu is there.

A place that is new in another version of PyTorch is to be read, and gets a row.
"""

import re
from pathlib import Path

import pytest
import torch
from bystander.places import places

from xpurt.torch_versions import SERIES, series_of

PAGE = Path(__file__).with_name("asked_places.md")


@pytest.fixture(scope="module")
def found() -> set[str]:
    return set(places(Path(torch.__file__).parent))


def listed(end: str) -> set[str]:
    """The places of the tables up to the line that begins with `end`."""
    _, _, section = PAGE.read_text().partition("## Where PyTorch checks")
    tables, found, _ = section.partition(f"\n{end}")
    assert found
    cells = [
        line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")
    ]
    return set(re.findall("`([^`]+)`", "".join(cells)))


def test_each_place_has_a_row(found: set[str]) -> None:
    assert len(found) > 80
    assert found - listed("C++ checks") == set()


@pytest.mark.skipif(
    series_of(torch.__version__) != SERIES[0],
    reason=f"the first table is of {SERIES[0]}",
)
def test_each_row_is_a_place(found: set[str]) -> None:
    assert listed("PyTorch 2.14 checks") - found == set()
