"""Nested tensors of layout strided: every op that the CPU has a kernel for."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from layout_calls import differences, ops_of
from nested_samples import CALLS, USES, Make, nested


@pytest.fixture(autouse=True)
def _no_prototype_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(name: str, device: torch.device) -> Any:
    return {**CALLS, **USES}[name](Make(device))


def run_backward(name: str, device: torch.device) -> Any:
    make = Make(device, grads=True)
    result = {**CALLS, **USES}[name](make)
    results = result if isinstance(result, list | tuple) else [result]
    wanted = [
        each
        for each in results
        if isinstance(each, torch.Tensor) and each.requires_grad
    ]
    for each in wanted:
        each.backward(torch.ones_like(each), retain_graph=True)
    return [leaf.grad for leaf in make.leaves if leaf.grad is not None]


def test_every_op_with_a_kernel_is_called() -> None:
    # Memory of the host alone can be pinned: tests/native/test_asked_devices.py.
    assert sorted([*CALLS, "aten::_pin_memory"]) == ops_of("NestedTensorCPU")


def test_forward(xpu: torch.device) -> None:
    wrong, computed = differences([*CALLS, *USES], run, xpu)
    assert wrong == {}
    assert len(computed) > 105


def test_backward(xpu: torch.device) -> None:
    names = [name for name in (*CALLS, *USES) if not name.endswith("_out")]
    wrong, computed = differences(names, run_backward, xpu, autograds=True)
    assert wrong == {}
    assert len(computed) > 60


def test_results_stay_on_xpu(xpu: torch.device) -> None:
    made = nested(Make(xpu))
    for result in (made * 2, torch.softmax(made, -1), made.sum(-1, keepdim=True)):
        assert (result.device, result.is_nested) == (xpu, True)


def test_writing_reaches_the_parts(xpu: torch.device) -> None:
    made = nested(Make(xpu))
    first = made.unbind()[0]
    made.mul_(0).add_(3)
    assert first.cpu().unique().tolist() == [3]
    first.fill_(4)
    assert [part.cpu().mean().item() for part in made.unbind()] == [4, 3]
