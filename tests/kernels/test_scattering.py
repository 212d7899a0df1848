"""Writing at indices: several to one element, masks among indices, overlaps."""

from collections.abc import Callable

import pytest
import torch

import xpurt
from kernels.kernel_forced import forced
from xpurt.testing.oracle import agree


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce: str, include_self: bool, xpu: torch.device) -> None:
    index = torch.tensor([[0, 0, 3], [3, 3, 3]])
    given = (randn(2, 5), 1, index, randn(2, 3), reduce)
    with forced("aten::scatter_reduce"):
        agree(torch.scatter_reduce, *given, include_self=include_self)
    if reduce != "sum":
        given = (randn(5, 2), 0, torch.tensor([1, 1, 4]), randn(3, 2), reduce)
        with forced("aten::index_reduce"):
            agree(torch.index_reduce, *given, include_self=include_self)


def test_the_mean_of_integers_is_rounded_down(xpu: torch.device) -> None:
    x, index = torch.zeros(2, dtype=torch.int32), torch.tensor([0, 0, 1, 1])
    source = torch.tensor([-1, -2, 1, 2], dtype=torch.int32)
    with xpurt.kernel_policy("sycl"):
        agree(torch.scatter_reduce, x, 0, index, source, "mean", include_self=False)


def test_accumulation_is_repeatable(xpu: torch.device) -> None:
    x, index = torch.zeros(7, device=xpu), torch.arange(5000, device=xpu) % 7
    values = randn(5000).to(xpu)
    with forced("aten::_index_put_impl_"):
        sums = [x.index_put((index,), values, accumulate=True) for _ in range(3)]
    expected = torch.zeros(7).index_put((index.cpu(),), values.cpu(), accumulate=True)
    assert sums[0].tolist() == sums[1].tolist() == sums[2].tolist()
    torch.testing.assert_close(sums[0].cpu(), expected, rtol=1e-4, atol=1e-4)


INDICES = {
    "adjacent": (None, torch.tensor([1, -1]), torch.tensor([[0], [2]])),
    "apart": (torch.tensor([1, 0]), None, torch.tensor([3, -4])),
    "mask": (torch.tensor([True, False]), None, torch.tensor([0])),
    "mask of two": (torch.tensor([[True, False, True], [False, True, False]]),),
}


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("accumulate", [False, True])
def test_lists_of_indices(kind: str, accumulate: bool, xpu: torch.device) -> None:
    x, indices = randn(2, 3, 4), INDICES[kind]
    with forced("aten::index"):
        chosen = agree(torch.ops.aten.index.Tensor, x, indices)
    with forced("aten::_index_put_impl_"):
        values = randn(*chosen.shape)
        agree(torch.ops.aten.index_put_, x, indices, values, accumulate)
        agree(torch.ops.aten.index_put_, x, indices, torch.tensor(2.0), accumulate)


def test_values_that_do_not_fit(xpu: torch.device) -> None:
    x, index = torch.zeros(4, 3, device=xpu), torch.tensor([0, 1], device=xpu)
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match="shape mis"):
        x.index_put_((index,), torch.ones(5, device=xpu))
    with xpurt.kernel_policy("sycl"), pytest.raises(IndexError, match="shape mism"):
        x.index_put_((index, index.new_zeros(3)), torch.ones(1, device=xpu))


def test_out_that_is_an_operand_is_refused(xpu: torch.device) -> None:
    x, index = torch.zeros(3, device=xpu), torch.tensor([2, 1, 0], device=xpu)
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match="single mem"):
        torch.gather(x, 0, index, out=x)
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match="single mem"):
        torch.cat([x, x], out=x)


aten = torch.ops.aten
SIZES_THAT_DO_NOT_FIT: dict[str, Callable[[torch.device | str], object]] = {
    "embedding, fewer rows": lambda device: aten.embedding_dense_backward(
        torch.ones(2, 4, device=device), torch.arange(3, device=device), 3, -1, False
    ),
    "embedding, more rows": lambda device: aten.embedding_dense_backward(
        torch.ones(5, 4, device=device), torch.arange(3, device=device), 3, -1, False
    ),
    "windows, fewer": lambda device: aten.unfold_backward(
        torch.ones(2, 2, device=device), [6], 0, 2, 2
    ),
    "windows, more": lambda device: aten.unfold_backward(
        torch.ones(4, 2, device=device), [6], 0, 2, 2
    ),
}


@pytest.mark.parametrize("case", SIZES_THAT_DO_NOT_FIT)
def test_a_gradient_of_another_size_is_refused(case: str, xpu: torch.device) -> None:
    call = SIZES_THAT_DO_NOT_FIT[case]
    with pytest.raises(RuntimeError) as expected:
        call("cpu")
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError) as found:
        call(xpu)
    assert str(found.value) == str(expected.value)
