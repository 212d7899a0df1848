"""The attention ops that PyTorch has for GPUs alone: dense and packed, with windows,
dropout and biases, against plain attention in float64."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from torch.testing._internal.common_methods_invocations import op_db

from xpurt import kernel_policy

# Under GPU the native kernels are the same, on copies.
pytestmark = pytest.mark.beyond_cpu(_policy=["sycl"])

flash = torch.ops.aten._flash_attention_forward
efficient = torch.ops.aten._efficient_attention_forward

# Lengths of queries and keys, sequence by sequence: equal ones, decoding, queries that
# see no key where it is causal, a sequence without queries.
LENGTHS = [(5, 5), (1, 9), (7, 3), (0, 4), (6, 6)]
TOLERANCE = {
    torch.float32: 2e-5,
    torch.float64: 2e-6,  # sums of exp(score) are float32
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


@pytest.fixture(autouse=True, params=["native", "sycl"])
def _policy(request: pytest.FixtureRequest) -> Iterator[None]:
    with kernel_policy(request.param):
        yield


def numbers(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def oracle(
    query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None = None, **given: Any
) -> tuple[Tensor, Tensor]:
    """Result and sums of one sequence in float64: (L, H, E) and (H, L)."""
    q, k, v = (each.double().transpose(0, 1) for each in (query, key, value))
    group = q.size(0) // k.size(0)
    k, v = (each.repeat_interleave(group, 0) for each in (k, v))
    scale = given.get("scale") or 1 / math.sqrt(q.size(-1))
    scores = q @ k.transpose(1, 2) * scale
    if (bias := given.get("bias")) is not None:
        scores = scores + bias.double()
    if seen is not None:
        scores = scores.masked_fill(~seen, -math.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0)
    return (weights @ v).transpose(0, 1), torch.logsumexp(scores, -1)


def band(queries: int, keys: int, lowest: float, highest: float) -> Tensor:
    distance = torch.arange(keys) - torch.arange(queries)[:, None]
    return (distance >= lowest) & (distance <= highest)


def flash_band(queries: int, keys: int, causal: bool, left: int, right: int) -> Tensor:
    corner = keys - queries
    last = 0 if causal else right
    return band(
        queries,
        keys,
        corner - left if left >= 0 else -math.inf,
        corner + last if last >= 0 else math.inf,
    )


def starts(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


class Packed:
    """Sequences that follow each other in one tensor, on the CPU."""

    def __init__(self, heads: int = 4, shared: int = 4, dtype: Any = torch.float32):
        self.starts_q = starts([q for q, _ in LENGTHS])
        self.starts_k = starts([k for _, k in LENGTHS])
        rows_q, rows_k = int(self.starts_q[-1]), int(self.starts_k[-1])
        self.query = numbers(rows_q, heads, 8, seed=1, dtype=dtype).requires_grad_()
        self.key = numbers(rows_k, shared, 8, seed=2, dtype=dtype).requires_grad_()
        self.value = numbers(rows_k, shared, 8, seed=3, dtype=dtype).requires_grad_()

    def operands(self) -> list[Tensor]:
        return [self.query, self.key, self.value]

    def on(self, xpu: torch.device) -> list[Tensor]:
        return [e.detach().to(xpu).requires_grad_() for e in self.operands()]

    def expected(self, seen: Any, **given: Any) -> tuple[Tensor, Tensor]:
        results, sums = [], []
        q_lengths, k_lengths = zip(*LENGTHS, strict=True)
        parts = zip(
            self.query.split(q_lengths),
            self.key.split(k_lengths),
            self.value.split(k_lengths),
            strict=True,
        )
        for q, k, v in parts:
            out, row_sums = oracle(q, k, v, seen(len(q), len(k)), **given)
            results.append(out)
            sums.append(row_sums)
        return torch.cat(results), torch.cat(sums, 1)


def assert_close(found: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    bound = TOLERANCE[dtype]
    torch.testing.assert_close(
        found.detach().cpu().double(),
        expected.detach().double(),
        rtol=bound,
        atol=bound,
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("causal", "left", "right", "dtype"),
    [
        *((True, 3, -1, dtype) for dtype in TOLERANCE),
        *((*each, torch.float32) for each in ((False, -1, -1), (False, 2, 1))),
        (True, -1, -1, torch.float16),
    ],
)
def test_packed_flash(
    causal: bool, left: int, right: int, dtype: torch.dtype, xpu: torch.device
) -> None:
    packed = Packed(shared=2, dtype=dtype)
    operands = packed.on(xpu)
    out, sums, *_ = flash(
        *operands, packed.starts_q.to(xpu), packed.starts_k.to(xpu), 7, 9, 0.0, causal,
        False, window_size_left=left, window_size_right=right,
    )  # fmt: skip
    expected, row_sums = packed.expected(
        lambda q, k: flash_band(q, k, causal, left, right)
    )
    assert (out.dtype, sums.dtype) == (dtype, torch.float32)
    assert_close(out, expected, dtype)
    # FlashAttention has infinity where a query sees no key.
    assert_close(sums, row_sums.masked_fill(row_sums == -math.inf, math.inf), dtype)
    grad = numbers(*out.shape, seed=5)
    found = torch.autograd.grad(out, operands, grad.to(xpu, dtype))
    wanted = torch.autograd.grad(expected, packed.operands(), grad.to(dtype).double())
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(6, 6), (3, 7), (7, 3)])
def test_dense_flash(causal: bool, queries: int, keys: int, xpu: torch.device) -> None:
    shapes = [(2, queries, 4, 8), (2, keys, 4, 8), (2, keys, 4, 8)]
    plain = [numbers(*s, seed=i).requires_grad_() for i, s in enumerate(shapes)]
    operands = [each.detach().to(xpu).requires_grad_() for each in plain]
    out, sums, *_ = flash(*operands, None, None, queries, keys, 0.0, causal, False)
    made = [
        oracle(*(each[i] for each in plain), flash_band(queries, keys, causal, -1, -1))
        for i in range(2)
    ]
    expected = torch.stack([each for each, _ in made])
    row_sums = torch.stack([each for _, each in made])
    assert_close(out, expected, torch.float32)
    assert_close(
        sums, row_sums.masked_fill(row_sums == -math.inf, math.inf), torch.float32
    )
    found = torch.autograd.grad(out.square().sum(), operands)
    wanted = torch.autograd.grad(expected.square().sum(), plain)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, torch.float32)


@pytest.mark.mappings("CPU", "GPU", "AUTO")
@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0), (1, 1)])
def test_varlen_attn(window: tuple[int, int], xpu: torch.device) -> None:
    packed = Packed(shared=2)
    operands = packed.on(xpu)
    rest = (packed.starts_q.to(xpu), packed.starts_k.to(xpu), 7, 9)
    options: dict[str, Any] = {"window_size": window, "enable_gqa": True}
    out, sums = varlen_attn(
        *operands, *rest, return_aux=AuxRequest(lse=True), **options
    )
    expected, _ = packed.expected(lambda q, k: flash_band(q, k, False, *window))
    assert_close(out, expected, torch.float32)
    assert sums.shape == (4, out.size(0))
    found = torch.autograd.grad(out.sum(), operands)
    wanted = torch.autograd.grad(expected.sum(), packed.operands())
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, torch.float32)
    with torch.no_grad():
        into = torch.empty_like(out)
        varlen_attn_out(into, *operands, *rest, **options)
        # Not the same bits: under AUTO another device may compute it.
        assert_close(into, expected.detach(), torch.float32)


@torch.no_grad()
def test_paged_keys_and_their_used_lengths(xpu: torch.device) -> None:
    """Two sequences, whose keys are in pages of four rows in any order."""
    query = numbers(5, 2, 8, seed=1)
    pool = numbers(6, 4, 2, 8, seed=2), numbers(6, 4, 2, 8, seed=3)
    pages, used = torch.tensor([[4, 1], [0, 5]]), torch.tensor([6, 3])
    out = varlen_attn(
        query.to(xpu), pool[0].to(xpu), pool[1].to(xpu),
        starts([2, 3]).to(xpu), None, 3, 8,
        seqused_k=used.to(xpu, torch.int32), block_table=pages.to(xpu, torch.int32),
    )  # fmt: skip
    for i, part in enumerate((slice(0, 2), slice(2, 5))):
        key, value = (each[pages[i]].flatten(0, 1)[: used[i]] for each in pool)
        assert_close(out[part], oracle(query[part], key, value)[0], torch.float32)


@torch.no_grad()
def test_alibi_slopes(xpu: torch.device) -> None:
    query, key, value = (numbers(1, 5, 2, 8, seed=i) for i in range(3))
    slopes = torch.tensor([0.5, 0.25])
    out, *_ = flash(
        query.to(xpu), key.to(xpu), value.to(xpu), None, None, 5, 5, 0.0, False, False,
        alibi_slopes=slopes.to(xpu),
    )  # fmt: skip
    distance = (torch.arange(5) - torch.arange(5)[:, None]).abs()
    bias = -slopes[:, None, None] * distance
    assert_close(
        out[0], oracle(query[0], key[0], value[0], bias=bias)[0], torch.float32
    )


@pytest.mark.parametrize(
    ("mask", "window", "dtype"),
    [
        (0, None, torch.float32),
        (1, None, torch.bfloat16),
        (2, None, torch.float16),
        (1, 2, torch.float32),
        (2, 2, torch.float16),
    ],
)
def test_packed_efficient(
    mask: int, window: int | None, dtype: torch.dtype, xpu: torch.device
) -> None:
    packed = Packed(dtype=dtype)
    # PyTorch does not pass a window on to the backward.
    operands = [each.requires_grad_(window is None) for each in packed.on(xpu)]
    out, sums, _, _, longest_q, longest_k = efficient(
        *(each.unsqueeze(0) for each in operands), None, packed.starts_q.to(xpu),
        packed.starts_k.to(xpu), 7, 9, 0.0, mask, True, window_size=window,
    )  # fmt: skip
    assert (longest_q, longest_k, sums.shape) == (7, 9, (len(LENGTHS), 4, 32))

    def seen(queries: int, keys: int) -> Tensor:
        last = {0: math.inf, 1: 0, 2: keys - queries}[mask]
        return band(queries, keys, last - window + 1 if window else -math.inf, last)

    expected, row_sums = packed.expected(seen)
    assert_close(out[0], expected, dtype)
    for i, part in enumerate(row_sums.split([q for q, _ in LENGTHS], 1)):
        assert_close(sums[i, :, : part.size(1)], part, dtype)
        assert torch.isposinf(sums[i, :, part.size(1) :]).all()
    if window is not None:
        return
    grad = numbers(*expected.shape, seed=5)
    found = torch.autograd.grad(out[0], operands, grad.to(xpu, dtype))
    wanted = torch.autograd.grad(expected, packed.operands(), grad.to(dtype).double())
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, dtype)


@pytest.mark.parametrize("shape", [(2, 3, 6, 5), (1, 3, 1, 5)])
def test_a_bias_and_values_of_another_size(
    shape: tuple[int, ...], xpu: torch.device
) -> None:
    shapes = [(2, 6, 3, 8), (2, 5, 3, 8), (2, 5, 3, 4), shape]
    plain = [numbers(*s, seed=i).requires_grad_() for i, s in enumerate(shapes)]
    operands = [each.detach().to(xpu).requires_grad_() for each in plain]
    out, *_ = efficient(
        *operands, None, None, None, None, 0.0, 0, True, scale=0.4
    )  # fmt: skip
    query, key, value, bias = (each.double() for each in plain)
    q, k, v = (each.transpose(1, 2) for each in (query, key, value))
    expected = torch.softmax(q @ k.transpose(-1, -2) * 0.4 + bias, -1) @ v
    assert_close(out.transpose(1, 2), expected, torch.float32)
    found = torch.autograd.grad(out.square().sum(), operands)
    wanted = torch.autograd.grad(expected.square().sum(), plain)
    for mine, theirs in zip(found, wanted, strict=True):
        assert_close(mine, theirs, torch.float32)


@pytest.mark.parametrize("op", ["flash", "efficient"])
def test_dropout_is_drawn_again_in_backward(op: str, xpu: torch.device) -> None:
    """With identity as values a result shows the weights that dropout left."""
    length, dropped = 16, 0.25
    query, key = (numbers(1, length, 2, 16, seed=i).to(xpu) for i in range(2))
    value = torch.eye(length).view(1, length, 1, length).expand(1, length, 2, length)
    value = value.contiguous().to(xpu).requires_grad_()

    def run() -> Tensor:
        if op == "flash":
            return flash(query, key, value, None, None, 16, 16, dropped, False, False)[
                0
            ]
        return efficient(
            query, key, value, None, None, None, None, None, dropped, 0, 1
        )[0]

    torch.xpu.manual_seed(3)
    out, other = run(), run()
    torch.xpu.manual_seed(3)
    again = run()
    assert torch.equal(out, again)
    assert not torch.equal(out, other)
    q, k = (each.cpu().transpose(1, 2) for each in (query, key))
    weights = torch.softmax(q @ k.transpose(-1, -2) / 4, -1)
    left = out.detach().cpu().transpose(1, 2)
    kept = left != 0
    torch.testing.assert_close(left, kept * weights / (1 - dropped))
    assert 0.6 < kept.double().mean() < 0.9
    grad = numbers(1, length, 2, length, seed=9)
    (found,) = torch.autograd.grad(out, value, grad.to(xpu))
    expected = left.transpose(-1, -2) @ grad.transpose(1, 2)
    torch.testing.assert_close(found.cpu().transpose(1, 2), expected)


REFUSED = [
    ("grow from 0", {"cum_seq_q": torch.tensor([0, 9], dtype=torch.int32)}),
    ("Give both, or neither", {"cum_seq_k": None}),
    ("Give one for each", {"seqused_k": torch.tensor([1, 1])}),
    ("return_debug_mask=False", {"return_debug_mask": True}),
    ("from 0 to 1", {"dropout_p": 1.5}),
    ("don't fit", {"key": torch.ones(4, 3, 8), "value": torch.ones(4, 3, 8)}),
    ("of one floating type", {"key": torch.ones(4, 2, 8, dtype=torch.float64)}),
]


@pytest.mark.parametrize(("message", "changes"), REFUSED, ids=[m for m, _ in REFUSED])
def test_what_flash_refuses(
    message: str, changes: dict[str, Any], xpu: torch.device
) -> None:
    begins = torch.tensor([0, 4], dtype=torch.int32)
    given: dict[str, Any] = {
        **{name: torch.ones(4, 2, 8) for name in ("query", "key", "value")},
        "cum_seq_q": begins, "cum_seq_k": begins, "max_q": 4, "max_k": 4,
        "dropout_p": 0.0, "is_causal": False, "return_debug_mask": False, **changes,
    }  # fmt: skip
    on_xpu = {
        name: each.to(xpu) if isinstance(each, Tensor) else each
        for name, each in given.items()
    }
    with pytest.raises((RuntimeError, NotImplementedError), match=message):
        flash(**on_xpu)


def test_a_gradient_that_would_be_wrong_is_refused(xpu: torch.device) -> None:
    operand = torch.ones(1, 4, 2, 8, device=xpu, requires_grad=True)
    slopes = torch.ones(2, device=xpu)
    with pytest.raises(NotImplementedError, match="no_grad"):
        flash(
            operand, operand, operand, None, None, 4, 4, 0.0, False, False,
            alibi_slopes=slopes,
        )  # fmt: skip
    with pytest.raises(NotImplementedError, match="no_grad"):
        efficient(
            operand, operand, operand, None, None, None, None, None, 0.0, 1, True,
            window_size=2,
        )  # fmt: skip


NAMES = [f"torch.ops.aten._{kind}_attention_forward" for kind in ("flash", "efficient")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_samples_of_pytorch(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    """Shapes, dtypes and devices as the meta functions have them."""
    (info,) = [each for each in op_db if each.name == name]

    def leaf(each: Any) -> Any:
        if not isinstance(each, Tensor) or not each.is_floating_point():
            return each
        return each.detach().requires_grad_()

    for given in info.sample_inputs(xpu, dtype, requires_grad=True):
        sample = given.transform(leaf)
        made = info(sample.input, *sample.args, **sample.kwargs)
        meta = sample.transform(
            lambda each: each.detach().to("meta") if isinstance(each, Tensor) else each
        )
        likes = info(meta.input, *meta.args, **meta.kwargs)
        for found, like in zip(made, likes, strict=True):
            if isinstance(like, Tensor):
                assert (found.shape, found.dtype) == (like.shape, like.dtype)
                assert found.device == xpu
            else:
                assert found == like
        assert made[0].isfinite().all()
        (grad,) = torch.autograd.grad(made[0].sum(), sample.input)
        assert (grad.shape, grad.isfinite().all().item()) == (sample.input.shape, True)


def test_attention_of_modules_is_the_same(xpu: torch.device) -> None:
    query, key, value = (numbers(2, 6, 3, 8, seed=i).to(xpu) for i in range(3))
    out, *_ = flash(query, key, value, None, None, 6, 6, 0.0, True, False)
    expected = F.scaled_dot_product_attention(
        *(each.transpose(1, 2) for each in (query, key, value)), is_causal=True
    )
    torch.testing.assert_close(out.transpose(1, 2), expected)
