"""Attention by products of panels: the values of float64, and which calls it is for."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from ops_that_run import Ops
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.functional.attention import attention
from xpurt.functional.winograd import BLOCKS

# Weighted means of values of standard deviation 1, beside PyTorch's kernel: each rounds
# sums of `size` products, and of up to 300 keys.
TOLERANCE = 4e-6

with_panels = pytest.mark.skipif(
    not BLOCKS, reason="products of panels want AVX2 or AVX-512"
)
panels = torch.ops.xpurt.panel_attention.default
HAS_AMX = bool(torch.cpu.get_capabilities().get("amx_bf16"))


def operands(
    queries: int, keys: int, size: int, device: str = "cpu"
) -> tuple[Tensor, ...]:
    """Two sequences, three heads that are adjacent within a token."""
    made = (torch.randn(2, tokens, 3, size) for tokens in (queries, keys, keys))
    return tuple(each.to(device).transpose(1, 2) for each in made)


def values(*args: Any, **kwargs: Any) -> tuple[Tensor, bool]:
    with torch.no_grad(), Ops() as ops:
        y = attention(*args, **kwargs)
    return y, "panel_attention" in ops.names


def exact(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **kwargs: Any) -> Tensor:
    wide = (each.detach().cpu().double() for each in (q, k, v))
    return F.scaled_dot_product_attention(*wide, *rest, **kwargs)


@with_panels
@pytest.mark.parametrize(
    ("queries", "keys", "size"),
    [(32, 1, 16), (33, 47, 20), (97, 300, 64), (200, 257, 7), (300, 300, 1)],
)
@pytest.mark.parametrize("causal", [False, True])
def test_values(device: str, queries: int, keys: int, size: int, causal: bool) -> None:
    q, k, v = operands(queries, keys, size, device)
    found, used = values(q, k, v, is_causal=causal)
    assert used
    wanted = exact(q, k, v, is_causal=causal)
    assert_close(found.cpu().double(), wanted, rtol=0, atol=TOLERANCE)
    assert found.stride() == torch.empty_like(q).stride()


@with_panels
@pytest.mark.parametrize("sizes", [(2, 3, 64, 300), (2, 1, 1, 300), (64, 300), (64, 1)])
@pytest.mark.parametrize("scale", [None, 0.0, -0.3, 0.3])
def test_a_mask_is_added(sizes: tuple[int, ...], scale: float | None) -> None:
    q, k, v = operands(64, 300, 32)
    mask = torch.randn(sizes).masked_fill(torch.rand(sizes) < 0.3, -math.inf)
    mask[..., 0] = 0
    found, used = values(q, k, v, mask, scale=scale)
    assert used
    wanted = exact(q, k, v, mask.double(), scale=scale)
    assert_close(found.double(), wanted, rtol=0, atol=TOLERANCE)


@with_panels
@pytest.mark.parametrize("sizes", [(2, 1, 1, 300), (64, 300)])
def test_a_mask_of_keys_that_take_part(device: str, sizes: tuple[int, ...]) -> None:
    q, k, v = operands(64, 300, 32, device)
    mask = torch.rand(sizes) < 0.5
    found, used = values(q, k, v, mask.to(device))
    assert used
    assert_close(found.cpu().double(), exact(q, k, v, mask), rtol=0, atol=TOLERANCE)


@with_panels
def test_queries_without_keys_and_numbers_that_are_none() -> None:
    q, k, v = operands(40, 270, 16)
    mask = torch.zeros(40, 270)
    mask[3] = -math.inf
    mask[5, :260] = -math.inf  # the first block of keys
    mask[7, 2] = math.nan
    scores = q, k, v, mask
    out, sums = panels(*scores, False, 0.25)
    wanted, of_pytorch = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, attn_mask=mask, scale=0.25
    )
    assert_close(out, wanted, rtol=0, atol=TOLERANCE, equal_nan=True)
    assert_close(sums, of_pytorch, rtol=0, atol=TOLERANCE, equal_nan=True)
    assert out[:, :, 3].eq(0).all()
    assert out[:, :, 7].isnan().all()


@with_panels
@pytest.mark.parametrize("size", [7, 64])
@pytest.mark.parametrize("masked", [False, True])
def test_bfloat16_is_computed_in_float32(device: str, size: int, masked: bool) -> None:
    wide = operands(97, 300, size, device)
    wide[2][0, 0, :3] = torch.tensor([math.inf, math.nan, -math.inf])[:, None]
    q, k, v = (each.bfloat16() for each in wide)
    mask = torch.randn(97, 300, device=device) if masked else None
    found, sums = panels(q, k, v, mask, not masked, 0.25)
    wanted, wide_sums = panels(q.float(), k.float(), v.float(), mask, not masked, 0.25)
    assert_close(found, wanted.bfloat16(), rtol=0, atol=0, equal_nan=True)
    assert found.stride() == torch.empty_like(q).stride()
    assert sums.equal(wide_sums)


@pytest.mark.skipif(HAS_AMX, reason="attention in bfloat16 is PyTorch's with AMX")
@with_panels
def test_calls_in_bfloat16(device: str) -> None:
    q, k, v = (each.bfloat16() for each in operands(64, 300, 32, device))
    mask = torch.randn(64, 300, device=device, dtype=torch.bfloat16)
    found, used = values(q, k, v, mask)
    assert used
    wanted = exact(q, k, v, mask.cpu().double())
    assert_close(found.cpu().double(), wanted, rtol=2**-8, atol=TOLERANCE)


@with_panels
def test_weights_have_the_errors_of_pytorchs_exp() -> None:
    """Each query weighs one key by 1 and another by exp of its number."""
    x = torch.linspace(-87, 0, 64 * 1024).view(1, 64, 1024, 1)
    keys = torch.tensor([0.0, 1.0]).view(1, 1, 2, 1).expand(1, 64, 2, 1)
    (out, sums) = panels(x, keys, keys, None, False, 1.0)
    weight = x.double().exp()
    ulps = ((out.double() - weight / (1 + weight)) / weight).abs().max() * 2**23
    assert ulps <= 4  # of exp, of a sum, of a quotient and of a product
    assert_close(sums.double(), weight.log1p()[..., 0], rtol=0, atol=1e-7)


@with_panels
@pytest.mark.parametrize("what", ["few", "dropout", "double", "grouped", "3d"])
def test_other_calls_are_pytorchs(what: str) -> None:
    q, k, v = operands(8 if what == "few" else 64, 64, 32)
    options: dict[str, Any] = {}
    if what == "double":
        q, k, v = q.double(), k.double(), v.double()
    elif what == "grouped":
        k, v = k[:, :1], v[:, :1]
        options["enable_gqa"] = True
    elif what == "3d":
        q, k, v = q[0], k[0], v[0]
    elif what == "dropout":
        options["dropout_p"] = 0.5
    torch.manual_seed(0)
    found, used = values(q, k, v, **options)
    torch.manual_seed(0)
    assert not used
    assert found.equal(F.scaled_dot_product_attention(q, k, v, **options))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_operands_are_cast_as_by_autocast(dtype: torch.dtype, device: str) -> None:
    q, k, v = operands(64, 300, 32, device)
    v = v.bfloat16()
    mask = torch.randn(64, 300, device=device)
    lower = [each.to(dtype) for each in (q, k, v, mask)]
    with torch.autocast(device, dtype):
        found, used = values(q, k, v, mask)
    assert used == (dtype == torch.bfloat16 and bool(BLOCKS) and not HAS_AMX)
    assert found.equal(values(*lower)[0])


@with_panels
def test_gradients_are_pytorchs() -> None:
    q, k, v = operands(64, 64, 32)
    with Ops() as ops:
        attention(q.requires_grad_(), k, v).sum().backward()
    assert "panel_attention" not in ops.names
    assert q.grad is not None


class Block(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


@with_panels
@pytest.mark.usefixtures("in_optimized_form")
def test_an_optimized_model_takes_it(device: str) -> None:
    x = torch.randn(1, 2, 64, 32, device=device)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), Block()).eval().to(device)
    wanted = model.double()(x.double())
    model = xpurt.optimize(model.float(), dtype=torch.float32)
    with torch.no_grad(), torch.autograd.profiler.profile() as profile:
        y = model(x)
    assert "xpurt::panel_attention" in {each.name for each in profile.function_events}
    assert ("", "fused: attention by panels") in model.report.done
    assert_close(y.double(), wanted, rtol=0, atol=TOLERANCE)


@pytest.fixture
def times() -> Iterator[None]:
    """Calls of the row of xpu are quick, those of PyTorch's kernel are not."""
    _C.testing.pretend_times([10.0, 100_000.0])
    yield
    _C.testing.pretend_times([])


@with_panels
@pytest.mark.mappings("CPU")
@pytest.mark.usefixtures("xpu", "times")
def test_eager_xpu_tensors_learn_of_it() -> None:
    q, k, v = operands(128, 128, 64, "xpu")
    xpurt.op_report(reset=True)
    for _ in range(60):
        found = F.scaled_dot_product_attention(q, k, v)
    assert "xpurt::panel_attention" in {row.op for row in xpurt.op_report().rows}
    assert_close(found.cpu().double(), exact(q, k, v), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("sizes", "dtype", "said"),
    [
        (((1, 2, 3),) * 3, torch.float32, "wants queries and keys"),
        (((1, 1, 2, 3), (1, 1, 2, 4), (1, 1, 2, 4)), torch.float32, "keys of shape"),
        (((1, 1, 2, 3), (1, 1, 2, 3), (1, 1, 4, 3)), torch.float32, "values of shape"),
        (((1, 1, 2, 3),) * 3, torch.float64, "queries in float32; found Double"),
    ],
)
@with_panels
def test_bad_operands(
    sizes: tuple[tuple[int, ...], ...], dtype: torch.dtype, said: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        panels(*(torch.ones(each, dtype=dtype) for each in sizes), None, False, 1.0)


@with_panels
def test_keys_of_another_type() -> None:
    q = torch.ones(1, 1, 2, 3)
    with pytest.raises(
        TypeError, match=r"keys in bfloat16; found Float.*\.bfloat16\(\)"
    ):
        panels(q.bfloat16(), q, q, None, False, 1.0)


@pytest.mark.parametrize("mask", ["none", "of all heads", "of each head"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_a_token_of_grouped_heads_reads_the_keys_of_a_group_once(
    groups: int, mask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    q = torch.randn(2, 6, 1, 16)
    k, v = torch.randn(2, 2, groups, 40, 16)
    added = None
    if mask != "none":
        added = torch.randn(2, 6 if mask == "of each head" else 1, 1, 40)
    of_mask = () if added is None else (added.double(),)
    wanted = exact(q, k, v, *of_mask, enable_gqa=True)
    stock, shapes = F.scaled_dot_product_attention, []

    def recorded(query: Tensor, *rest: Any, **kwargs: Any) -> Tensor:
        shapes.append(tuple(query.shape))
        return stock(query, *rest, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", recorded)
    with torch.no_grad():
        found = attention(q, k, v, added, enable_gqa=True)
    assert shapes == [(2, groups, 6 // groups, 16)]
    assert found.shape == (2, 6, 1, 16)
    assert_close(found.double(), wanted, rtol=0, atol=TOLERANCE)
