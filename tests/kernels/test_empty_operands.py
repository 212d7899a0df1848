"""Every dimension 0 in turn, forward and backward: the CPU's result, or its error.

The whole sweep is a command: `python -m xpurt conformance` (docs/conformance.md).
"""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import xpurt
from xpurt import _C
from xpurt.testing import agree
from xpurt.testing.oracle import copied, outcome

Op = Callable[[torch.Tensor], object]


def losses(name: str, reduction: str) -> Op:
    return lambda x: getattr(F, name)(x, torch.zeros_like(x), reduction=reduction)


def interpolated(mode: str) -> Op:
    return lambda x: F.interpolate(x, scale_factor=2, mode=mode)


def to_size(mode: str) -> Op:
    return lambda x: F.interpolate(x, [3] * (x.dim() - 2), mode=mode)


def averaged(axes: int) -> Op:
    return lambda x: getattr(F, f"adaptive_avg_pool{axes}d")(x, 2)


def normalized(x: torch.Tensor) -> torch.Tensor:
    """Over two groups, with a weight and a bias that have gradients."""
    weight, bias = x.new_ones(2, x.shape[1]).unbind()
    return F.group_norm(x, 2, weight * x.sum().exp(), bias * x.sum().exp())


LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
OPS: dict[str, tuple[Op, tuple[int, ...]]] = {
    **{
        f"{name}, {reduction}": (losses(name, reduction), (2, 3))
        for name in LOSSES
        for reduction in ("none", "mean", "sum")
    },
    **{
        f"{name} interpolation": (op(name), (2, 4, *[3] * axes))
        for op in (interpolated, to_size)
        for name, axes in (("linear", 1), ("bilinear", 2), ("trilinear", 3))
    },
    **{
        f"{name} interpolation": (interpolated(name), (2, 4, 3, 3))
        for name in ("nearest", "nearest-exact", "bicubic")
    },
    "group_norm": (normalized, (2, 4, 3)),
    "group_norm of images": (normalized, (2, 4, 3, 3)),
    **{
        f"adaptive_avg_pool{axes}d": (averaged(axes), (2, 3, *[4] * axes))
        for axes in (1, 2, 3)
    },
    "index_reduce": (
        lambda x: x.index_reduce(0, x.new_zeros(1).long(), x[:1], "prod"),
        (2, 3),
    ),
    "index_select": (lambda x: x.index_select(-1, x.new_zeros(2).long()), (2, 3)),
    "the largest norm": (lambda x: x.norm(float("inf"), -1), (2, 3)),
    "unique_consecutive": (
        lambda x: torch.unique_consecutive(x.detach(), return_counts=True, dim=-1),
        (2, 3),
    ),
    "nonzero": (torch.nonzero, (2, 3)),
    "argwhere": (torch.argwhere, (3,)),
}


@pytest.mark.parametrize("name", OPS)
def test_every_dimension_empty(name: str, xpu: torch.device) -> None:
    op, full = OPS[name]
    for place in range(len(full)):
        shape = [0 if d == place else size for d, size in enumerate(full)]
        x = torch.rand(shape, requires_grad=not name.startswith(("nonzero", "argw")))
        with xpurt.kernel_policy("sycl"):
            try:
                agree(op, x, device=xpu)
            except AssertionError as error:
                error.add_note(str(shape))
                raise
            except RuntimeError:
                pass  # as on the CPU: agree has seen to that


# Operands of which only some are empty.
SOME: dict[str, tuple[Op, tuple[torch.Tensor, ...]]] = {
    "a number at no index": (
        lambda x, index: x.index_select(0, index),
        (torch.ones(()), torch.ones(0, dtype=torch.int64)),
    ),
    "no columns to reduce": (
        lambda x, index, y: x.index_reduce(0, index, y, "prod"),
        (torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(2, 0)),
    ),
    "no columns to add": (
        lambda x, index, y: x.index_add(0, index, y),
        (torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(2, 0)),
    ),
    "a window without rows": (
        F.conv2d,
        (torch.ones(1, 3, 4, 4), torch.ones(3, 3, 0, 3)),
    ),
    "weights of no integers": (
        lambda x, weights: torch.bincount(x, weights),
        (torch.ones(0, dtype=torch.int64), torch.ones(5, dtype=torch.int64)),
    ),
    "no index into rows": (
        lambda x, index: x[:, 6:][index],
        (torch.ones(2, 6), torch.tensor([0, 1])),
    ),
    "no rows to add": (
        lambda x, index, y: x.index_add(0, index, y),
        (torch.ones(2, 3), torch.ones(0, dtype=torch.int64), torch.ones(0, 3)),
    ),
    "no index, and a source": (
        lambda x, index, y: x.put(index, y),
        (torch.ones(2, 3), torch.ones(0, dtype=torch.int64), torch.ones(2)),
    ),
    "no source, and an index": (
        lambda x, index, y: x.put(index, y, accumulate=True),
        (torch.ones(2, 3), torch.tensor([0, 1]), torch.ones(0)),
    ),
    "a target without rows": (
        F.nll_loss,
        (torch.ones(2, 3, 2, 2), torch.ones(2, 0, 2, dtype=torch.int64)),
    ),
    "a target with a row too many": (
        F.nll_loss,
        (torch.ones(2, 3, 2, 2), torch.ones(2, 3, 2, dtype=torch.int64)),
    ),
    **{
        f"a weight of {count} of 3 classes, {x.dim()} dimensions": (
            lambda x, target, weight: F.nll_loss(x, target, weight),
            (x, torch.ones(2, *x.shape[2:], dtype=torch.int64), torch.ones(count)),
        )
        for count in (0, 2)
        for x in (torch.ones(2, 3), torch.ones(2, 3, 2, 2))
    },
    "an image without columns to put back": (
        lambda x, at: torch._C._nn.max_unpool2d(x, at, [2, 0]),
        (torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.int64)),
    ),
    "a weight of classes with two dimensions": (
        F.nll_loss,
        (
            torch.arange(12.0).view(2, 2, 3),
            torch.tensor([[0, 1, 1], [1, 0, 1]]),
            torch.tensor([[1.0, 3.0]]),
        ),
    ),
    "products without rows": (
        torch.addbmm,
        (torch.ones(1), torch.ones(5, 0, 5), torch.ones(5, 5, 3)),
    ),
    "products without columns": (
        torch.addbmm,
        (torch.ones(1), torch.ones(5, 5, 5), torch.ones(5, 5, 0)),
    ),
    "attention without heads": (
        F.scaled_dot_product_attention,
        (torch.ones(2, 0, 3, 8), torch.ones(2, 0, 6, 8), torch.ones(2, 0, 6, 8)),
    ),
}


# The CPU's kernel leaves the result of no samples unset.
@pytest.mark.parametrize("loss", [F.multi_margin_loss, F.multilabel_margin_loss])
def test_a_loss_of_no_samples(
    loss: Callable[..., torch.Tensor], xpu: torch.device
) -> None:
    x = torch.ones(0, 5, device=xpu)
    target = x.long() if loss is F.multilabel_margin_loss else x[:, 0].long()
    before = torch.full((64,), 7.0, device=xpu)
    del before
    with xpurt.kernel_policy("sycl"):
        assert loss(x, target).isnan()
        assert loss(x, target, reduction="sum") == 0
        assert loss(x, target, reduction="none").shape == (0,)


# The CPU's kernel reads values that are not there.
@pytest.mark.parametrize(("keys", "values"), [(6, 5), (6, 0)])
def test_attention_has_a_value_for_each_key(
    keys: int, values: int, xpu: torch.device
) -> None:
    query = torch.ones(2, 4, 3, 8, device=xpu)
    for policy in ("auto", "sycl"):
        with xpurt.kernel_policy(policy), pytest.raises(RuntimeError, match="to be: "):
            F.scaled_dot_product_attention(
                query, query.new_ones(2, 4, keys, 8), query.new_ones(2, 4, values, 8)
            )


@pytest.mark.parametrize("name", SOME)
def test_some_operands_are_empty(name: str, xpu: torch.device) -> None:
    op, arguments = SOME[name]
    with xpurt.kernel_policy("sycl"):
        (expected, error), (found, found_error) = (
            outcome(op, *copied(arguments, torch.device(d))) for d in ("cpu", xpu)
        )
    assert type(found_error) is type(error)
    assert str(found_error) == str(error)
    if error is None:
        assert found.shape == expected.shape
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found.cpu(), expected)


@pytest.mark.mappings("GPU")
def test_nothing_to_compute_is_no_missing_kernel(
    xpu: torch.device, recwarn: pytest.WarningsRecorder
) -> None:
    """PyTorch's kernel gives the result its properties, without a warning of copies."""
    x = torch.ones(2, 6, device=xpu)
    before = _C.testing.fallback_mode()
    _C.set_fallback_mode("error")
    try:
        assert x[:, 6:][torch.tensor([0, 1], device=xpu)].shape == (2, 0)
        assert F.adaptive_avg_pool2d(x.new_ones(0, 3, 4, 4), 2).shape == (0, 3, 2, 2)
        assert F.mse_loss(x[:0], x[:0]).isnan()
        assert F.group_norm(x.view(2, 6, 1)[:0], 2, x[0], x[1]).shape == (0, 6, 1)
    finally:
        _C.set_fallback_mode(before)
    assert not recwarn
