"""Embedding bags: values and gradients as on the CPU, on the device."""

import itertools
from typing import Any

import pytest
import torch
from torch.nn.functional import embedding_bag

import xpurt
from kernels.kernel_forced import tiers_of
from xpurt import _C

INDICES = [1, 2, 4, 5, 4, 3]
OFFSETS = [[0, 2, 2], [0, 0, 3], [0], [0, 6]]


def results(device: torch.device | str, how: dict[str, Any]) -> list[torch.Tensor]:
    """A bag's result, and the gradients of what has one."""
    torch.manual_seed(3)
    table = torch.randn(5, 6).t().to(device).requires_grad_()
    samples = torch.randn(6).to(device).requires_grad_() if how.pop("samples") else None
    type_ = how.pop("type")
    indices = torch.tensor(INDICES, dtype=type_).to(device)
    offsets = torch.tensor(how.pop("offsets"), dtype=type_).to(device)
    wanted = [table] if samples is None else [table, samples]
    forward, backward = how.pop("policies", ("sycl", "sycl"))
    with xpurt.kernel_policy(forward):
        bags = embedding_bag(indices, table, offsets, per_sample_weights=samples, **how)
    with xpurt.kernel_policy(backward):
        into = torch.linspace(-1, 2, bags.numel()).view(bags.shape).to(device)
        gradients = torch.autograd.grad(bags, wanted, into)
    return [bags.detach().cpu(), *(each.cpu() for each in gradients)]


@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted"])
def test_every_way(mode: str, xpu: torch.device) -> None:
    _C.reset_op_report()
    named: dict[str, Any] = {
        "mode": "sum" if mode == "weighted" else mode,
        "samples": mode == "weighted",
    }
    for offsets, padding, type_ in itertools.product(
        OFFSETS, (None, 4), (torch.int64, torch.int32)
    ):
        how = named | {"offsets": offsets, "padding_idx": padding, "type": type_}
        for a, b in zip(results(xpu, {**how}), results("cpu", {**how}), strict=True):
            torch.testing.assert_close(a, b)
    last = named | {"offsets": [0, 2, 6], "include_last_offset": True}
    last["type"] = torch.int64
    for a, b in zip(results(xpu, {**last}), results("cpu", {**last}), strict=True):
        torch.testing.assert_close(a, b)
    weighted = ("_per_sample_weights_backward",) if mode == "weighted" else ()
    for op in ("", *weighted):
        assert tiers_of(f"aten::_embedding_bag{op}") == {"sycl"}
    assert tiers_of("xpurt::embedding_bag_backward") == {"sycl"}


@pytest.mark.parametrize("policies", [("native", "sycl"), ("sycl", "native")])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_tiers_hand_on_to_each_other(
    mode: str, policies: tuple[str, str], xpu: torch.device
) -> None:
    how: dict[str, Any] = {"mode": mode, "offsets": [0, 2, 2], "type": torch.int64}
    how["samples"] = mode == "sum"
    found = results(xpu, how | {"policies": policies})
    for a, b in zip(found, results("cpu", {**how}), strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_by_frequency_are_pytorchs(xpu: torch.device) -> None:
    how: dict[str, Any] = {"mode": "sum", "offsets": [0, 2], "type": torch.int64}
    how |= {"samples": False, "scale_grad_by_freq": True}
    for a, b in zip(results(xpu, {**how}), results("cpu", {**how}), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("indices", "offsets"),
    [([1, 9], [0]), ([-1, 2], [0]), ([1], [1]), ([1, 2], [0, 3])],
)
def test_what_is_out_of_range(
    indices: list[int], offsets: list[int], xpu: torch.device
) -> None:
    table = torch.randn(6, 5).to(xpu)
    torch.xpu.synchronize()
    with xpurt.kernel_policy("sycl"):
        embedding_bag(
            torch.tensor(indices).to(xpu), table, torch.tensor(offsets).to(xpu)
        )
        with pytest.raises(RuntimeError, match="embedding_bag: Expected idx >= 0"):
            torch.xpu.synchronize()
        with pytest.raises(RuntimeError, match="xpected"):
            torch.embedding_bag(table, table[0], torch.tensor([0]).to(xpu))
