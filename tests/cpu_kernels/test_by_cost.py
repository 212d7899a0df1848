"""The mode "auto": which calls are measured, and where large memory comes from."""

from collections.abc import Iterator

import pytest
import torch
from rows_taken import Ran

import xpurt
from xpurt import _C
from xpurt.cpu_tensors import table

LARGE = 1 << 18
MOST_CALLS = 10_000  # until a class has been measured


@pytest.fixture
def auto(ran: Ran) -> Iterator[Ran]:
    with xpurt.cpu_kernels("auto"):
        yield ran


@pytest.mark.rest
def test_both_forms_are_measured_and_agree(auto: Ran) -> None:
    x = torch.randn(LARGE).bfloat16()
    expected = torch.tanh(x.float()).bfloat16()
    for _ in range(MOST_CALLS):
        torch.testing.assert_close(x.tanh(), expected)
        if "aten::tanh" in auto():
            break
    assert "aten::tanh" in auto()


def test_small_calls_are_pytorchs(auto: Ran) -> None:
    x = torch.randn(1000).bfloat16()
    for _ in range(MOST_CALLS):
        x.tanh()
    assert auto() == set()


def call_until_a_trial_would_pay() -> None:
    x = torch.randn(1 << 22).bfloat16()
    for _ in range(150):
        x.erfc()


def test_times_decide_nothing_in_deterministic_mode(auto: Ran) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        call_until_a_trial_would_pay()
    finally:
        torch.use_deterministic_algorithms(False)
    assert auto() == set()


def test_times_decide_nothing_while_learning_is_off(auto: Ran) -> None:
    before = _C.learning()
    _C.set_learning(False)
    try:
        call_until_a_trial_would_pay()
    finally:
        _C.set_learning(before)
    assert auto() == set()


def test_only_ops_of_the_table_are_taken(auto: Ran) -> None:
    names = {name.split("::")[1].split(".")[0] for name in kernels_now()}
    listed = {row.op for row in table.BY_COST}
    assert {name.rstrip("_") for name in names} <= listed
    assert names


def kernels_now() -> list[str]:
    return _C.testing.ops_with_cpu_kernels()


@pytest.mark.parametrize("row", table.BY_COST, ids=lambda row: row.op)
def test_each_op_of_the_table_has_a_kernel(auto: Ran, row: table.CpuOp) -> None:
    assert any(name.startswith(f"aten::{row.op}") for name in kernels_now())
    assert row.reason
    assert 0 < row.ratio < 1


def test_large_memory_comes_from_the_cache(auto: Ran) -> None:
    before = _C.blocks_of_cpu_tensors()
    large, small = torch.empty(LARGE), torch.empty(8)
    assert _C.blocks_of_cpu_tensors() == before + 1
    address = large.data_ptr()
    del large
    assert _C.blocks_of_cpu_tensors() == before
    again = torch.empty(LARGE)
    assert again.data_ptr() == address
    assert small.numel() == 8
    xpurt.set_cpu_kernels("native")
    kept = torch.empty(LARGE)
    assert _C.blocks_of_cpu_tensors() == before + 1
    assert kept.numel() == again.numel()
