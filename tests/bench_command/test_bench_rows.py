"""Every row of the real suites: its work on the CPU, and the cheap ones on xpu too."""

import numpy
import pytest
import torch

import xpurt
from xpurt_tools.bench.row import Row, tensors_in
from xpurt_tools.bench.suites import SUITES
from xpurt_tools.bench.suites.compile import COMPILE

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


COMPILED = {row.name: row for row in COMPILE.rows}


@pytest.mark.parametrize(
    "row",
    [
        COMPILED["add of 64 elements"],
        COMPILED["batch norm, ReLU, add"],
        pytest.param(COMPILED["GPT step"], marks=pytest.mark.slow),  # a minute
    ],
    ids=lambda row: row.name,
)
def test_compiled_rows_compute_the_same_on_xpu(row: Row) -> None:
    xpurt.set_xpu_mapping("CPU")
    results = [row.prepare(torch.device(device)).call() for device in ("cpu", "xpu")]
    expected, found = (list(tensors_in(each)) for each in results)
    assert [each.device.type for each in found] == ["xpu"] * len(expected)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other.cpu(), one)


@pytest.mark.slow
@pytest.mark.parametrize("row", rows("compile-eager")[:2])
def test_rows_of_xpu_alone(row: Row, xpu: torch.device) -> None:
    torch.compiler.reset()  # the mapping may be another one now
    assert row.beside is not None
    expected, found = row.beside(xpu).call(), row.prepare(xpu).call()
    torch.testing.assert_close(found, expected)


def test_other_libraries_compute_the_same() -> None:
    """The rows with a call by JAX, and the first one by OpenVINO, where installed."""
    wanted = {"JAX": 6, "OpenVINO": 1}
    for name, count in wanted.items():
        pytest.importorskip(name.lower())
        having = [row for row in COMPILE.rows if name in row.others]
        for row in having[:count]:
            call, finish = row.others[name]()
            found = call()
            finish()
            (expected,) = tensors_in(row.prepare(CPU).call())
            first = found[0] if name == "OpenVINO" else found
            torch.testing.assert_close(
                torch.from_numpy(numpy.array(first)), expected, rtol=1e-4, atol=1e-4
            )
