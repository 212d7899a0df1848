"""Every row of the real suites: its work on the CPU, and the cheap ones on xpu too."""

import pytest
import torch

from xpurt.bench.row import Row
from xpurt.bench.suites import SUITES

CPU = torch.device("cpu")
SMALL_SUITES = ("dispatch", "pointwise-64k")


def rows(*names: str) -> list[object]:
    return [
        pytest.param(row, id=f"{suite.name} {row.name}")
        for suite in SUITES
        if suite.name in names
        for row in suite.rows
    ]


@pytest.mark.parametrize("row", rows(*SMALL_SUITES))
def test_a_row_works_on_the_cpu(row: Row) -> None:
    work = row.prepare(CPU)
    work.call()
    assert work.elements > 0
    assert work.size_bytes > 0
