"""Every row of the real suites: its work on the CPU, and the cheap ones on xpu too."""

import pytest
import torch

from xpurt.bench.row import Row, tensors_in
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


COMPILED = ("add of 64 elements", "batch norm, ReLU, add", "GPT step")


@pytest.mark.parametrize(
    "row",
    [row for row in rows("compile") if row.values[0].name in COMPILED],  # type: ignore[attr-defined]
)
def test_compiled_rows_compute_the_same_on_xpu(row: Row) -> None:
    results = [row.prepare(torch.device(device)).call() for device in ("cpu", "xpu")]
    expected, found = (list(tensors_in(each)) for each in results)
    assert [each.device.type for each in found] == ["xpu"] * len(expected)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other.cpu(), one)
