"""Gradients of attention by products of panels: those of float64, and which calls they
are for."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.functional.winograd import BLOCKS

# Of sums of up to 300 products of numbers of standard deviation 1, beside PyTorch's
# kernel; its own largest error of these shapes is 4e-6.
TOLERANCE = 8e-6

pytestmark = pytest.mark.skipif(
    not BLOCKS, reason="products of panels want AVX2 or AVX-512"
)
panels = torch.ops.xpurt.panel_attention_backward.default
forward = torch.ops.xpurt.panel_attention.default

Three = tuple[Tensor, ...]


def operands(queries: int, keys: int, size: int, device: str = "cpu") -> Three:
    """The gradient, queries, keys and values of two sequences, with three heads that are
    adjacent within a token."""
    made = (
        torch.randn(2, tokens, 3, size) for tokens in (queries, queries, keys, keys)
    )
    return tuple(each.to(device).transpose(1, 2) for each in made)


def exact(
    grad: Tensor,
    *inputs: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Three:
    wide = [each.cpu().double().requires_grad_() for each in inputs]
    added = None if mask is None else mask.cpu().double()
    y = F.scaled_dot_product_attention(*wide, added, is_causal=causal, scale=scale)
    return torch.autograd.grad(y, wide, grad.cpu().double())


def found(
    grad: Tensor,
    *inputs: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Three:
    factor = inputs[0].shape[-1] ** -0.5 if scale is None else scale
    out, sums = forward(*inputs, mask, causal, factor)
    made: Three = panels(grad, *inputs, out, sums, mask, causal, factor)
    return made


def assert_near(made: Three, wanted: Three) -> None:
    for one, other in zip(made, wanted, strict=True):
        assert_close(one.cpu().double(), other, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("queries", "keys", "size"),
    [(1, 1, 3), (33, 47, 20), (97, 300, 64), (200, 257, 7), (300, 130, 33)],
)
@pytest.mark.parametrize("causal", [False, True])
def test_values(device: str, queries: int, keys: int, size: int, causal: bool) -> None:
    given = operands(queries, keys, size, device)
    made = found(*given, causal=causal)
    assert_near(made, exact(*given, causal=causal))
    assert [each.stride() for each in made] == [each.stride() for each in given[1:]]


@pytest.mark.parametrize("sizes", [(2, 3, 64, 300), (2, 1, 1, 300), (64, 300), (64, 1)])
@pytest.mark.parametrize("scale", [None, 0.0, -0.3, 0.3])
def test_a_mask_is_added(sizes: tuple[int, ...], scale: float | None) -> None:
    given = operands(64, 300, 32)
    mask = torch.randn(sizes).masked_fill(torch.rand(sizes) < 0.3, -math.inf)
    mask[..., 0] = 0
    assert_near(
        found(*given, mask=mask, scale=scale), exact(*given, mask=mask, scale=scale)
    )


def test_rows_of_other_strides() -> None:
    """An expanded gradient, and values that are not adjacent."""
    grad = torch.ones(()).expand(2, 3, 70, 16)
    q, k, v = (torch.randn(2, 3, 16, 70).transpose(2, 3) for _ in range(3))
    assert_near(found(grad, q, k, v), exact(grad, q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_bfloat16_is_computed_in_float32(device: str, causal: bool) -> None:
    given = [each.bfloat16() for each in operands(97, 130, 20, device)]
    out, sums = forward(*given[1:], None, causal, 0.25)
    made = panels(*given, out, sums, None, causal, 0.25)
    wide = [each.float() for each in (*given, out)]
    wanted = panels(*wide, sums, None, causal, 0.25)
    for one, other, like in zip(made, wanted, given[1:], strict=True):
        assert one.equal(other.bfloat16())
        assert one.stride() == like.stride()


def test_queries_without_keys_get_zeros() -> None:
    given = operands(70, 90, 16)
    mask = torch.zeros(70, 90)
    mask[3] = -math.inf
    of_query, of_key, of_value = found(*given, mask=mask)
    assert of_query[:, :, 3].eq(0).all()
    grad, q, k, v = (each.clone() for each in given)
    grad[:, :, 3] = 0
    assert_near(
        (of_query, of_key, of_value), exact(grad, q, k, v, mask=mask.clamp(min=-1e9))
    )


def test_of_no_queries() -> None:
    grad, q, k, v = operands(0, 5, 4)
    sums = torch.zeros(2, 3, 0)
    made = panels(grad, q, k, v, grad, sums, None, False, 0.5)
    assert [each.shape for each in made] == [q.shape, k.shape, v.shape]
    assert all(each.eq(0).all() for each in made[1:])


@pytest.fixture
def times() -> Iterator[None]:
    """Calls of the row of xpu are quick, those of PyTorch's kernel are not."""
    _C.testing.pretend_times([10.0, 100_000.0])
    yield
    _C.testing.pretend_times([])


@pytest.mark.usefixtures("times")
@pytest.mark.parametrize(("queries", "taken"), [(128, True), (40, False)])
def test_eager_xpu_tensors_learn_of_it(queries: int, taken: bool) -> None:
    grad, *given = operands(queries, 128, 64, "xpu")
    leaves = [each.requires_grad_() for each in given]
    xpurt.op_report(reset=True)
    for _ in range(60):
        y = F.scaled_dot_product_attention(*leaves)
        made = torch.autograd.grad(y, leaves, grad)
    used = {row.op for row in xpurt.op_report().rows}
    assert ("xpurt::panel_attention_backward" in used) == taken
    assert_near(made, exact(grad, *(each.detach() for each in leaves)))


@pytest.mark.parametrize(
    ("at", "sizes", "said"),
    [
        (0, (1, 1, 2, 4), "a gradient of shape"),
        (3, (1, 1, 4, 3), "values of shape"),
        (4, (1, 1, 3, 3), "results of shape"),
        (5, (1, 1, 3), "sums of shape"),
        (6, (3, 2), "expanded size"),
    ],
)
def test_bad_operands(at: int, sizes: tuple[int, ...], said: str) -> None:
    given = [torch.ones(1, 1, 2, 3) for _ in range(5)]
    given += [torch.ones(1, 1, 2), torch.zeros(2, 2)]
    given[at] = torch.ones(sizes)
    with pytest.raises((ValueError, RuntimeError), match=said):
        panels(*given, False, 1.0)
