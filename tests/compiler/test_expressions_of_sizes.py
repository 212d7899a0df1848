"""Numbers that a kernel computes from sizes, which change from call to call."""

import math
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from xpurt import _C

pytestmark = [
    pytest.mark.mappings("GPU"),
    pytest.mark.filterwarnings("error:torch.compile runs"),
]


@pytest.fixture(autouse=True)
def kernels(xpu: torch.device) -> None:
    if _C.host_reads(xpu.index):
        pytest.skip("graphs become native code")


def numbers(x: torch.Tensor) -> tuple[Any, ...]:
    rows, columns = x.shape
    return (
        x + rows / 7,
        x + max(rows / 7, columns / 3) + max(rows, columns),
        x + min(rows / 7, columns * 1.5) + min(rows, columns, 4),
        x + abs(-rows / 7) + abs(3 - rows),
        x + round(rows / 7, 2),
        x + round(rows * 100 / 7, -1),
        x + round(rows / 7) + math.floor(rows / 3) + math.ceil(rows / 3),
        x + (rows / 7) ** 2.5 + columns**2,
        x + (rows / 7) // 2 + (rows & 12) + (rows >> 1),
        x * (rows > columns),
        torch.full((3,), rows / 7, device=x.device),
    )


def test_they_are_those_of_eager_mode(xpu: torch.device) -> None:
    compiled = torch.compile(numbers, dynamic=True, fullgraph=True)
    for rows in (29, 5):
        x = torch.ones(rows, 6, device=xpu)
        assert_close(compiled(x), numbers(x))


def test_they_have_the_digits_of_the_type(xpu: torch.device) -> None:
    if not torch.xpu.get_device_properties(xpu).has_fp64:
        pytest.skip("the device has no double")
    x = torch.ones(29, 6, dtype=torch.float64, device=xpu)
    compiled = torch.compile(lambda x: x + x.shape[0] / 7, dynamic=True)
    assert_close(compiled(x), x + 29 / 7, rtol=1e-15, atol=0)
