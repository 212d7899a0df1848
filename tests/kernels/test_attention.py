"""Attention in blocks, forward and backward: by oneDNN's products and by tiles."""

import math

import pytest
import torch
from cpu_types import has_bf16
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.varlen import varlen_attn
from torch.testing import assert_close

from kernels.kernel_forced import check_on_queue, tiers_of
from kernels.kernel_tolerance import assert_near
from xpurt import _C, kernel_policy

FORWARD = "aten::_scaled_dot_product_flash_attention_for_cpu"
BACKWARD = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"

# Batch, heads, queries, keys, size of a head.
SIZES = [
    (1, 1, 1, 1, 8),
    (2, 3, 17, 17, 16),
    (2, 3, 2, 9, 8),  # fewer heads than a work-group has
    (2, 2, 40, 33, 20),
    (1, 2, 70, 70, 64),
    (1, 1, 300, 3, 5),
    (1, 1, 3, 90, 72),
]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def operands(
    size: tuple[int, int, int, int, int], dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """As in a model: heads beside each other in memory."""
    batch, heads, queries, keys, each = size
    return tuple(  # type: ignore[return-value]
        numbers(batch, tokens, heads, each + extra, dtype=dtype)[..., :each].transpose(
            1, 2
        )
        for extra, tokens in enumerate((queries, keys, keys))
    )


def run(
    inputs: tuple[Tensor, ...], mask: Tensor | None, device: torch.device | str, **how
) -> list[Tensor]:
    leaves = [x.detach().to(device).requires_grad_() for x in inputs]
    if mask is not None:
        mask = mask.to(device)
    result = F.scaled_dot_product_attention(*leaves, attn_mask=mask, **how)
    weights = torch.linspace(-1, 1, result.numel(), device="cpu")
    result.backward(weights.reshape(result.shape).to(result))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def check(
    inputs: tuple[Tensor, ...],
    xpu: torch.device,
    mask: Tensor | None = None,
    factor: float = 10,
    **how,
) -> None:
    expected = run(inputs, mask, "cpu", **how)
    torch.xpu.synchronize()
    _C.reset_op_report()
    with kernel_policy("sycl"):
        actual = run(inputs, mask, xpu, **how)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs, factor, check_stride=False)
    check_on_queue(FORWARD, BACKWARD)


@pytest.mark.parametrize("order", ["contiguous", "heads inside", "sizes outside"])
def test_the_result_has_the_layout_of_the_query(xpu: torch.device, order: str) -> None:
    """A compiled graph is traced with PyTorch's layout, and takes addresses from it."""
    query = numbers(2, 3, 17, 16)
    if order == "heads inside":
        query = numbers(2, 17, 3, 48)[..., :16].transpose(1, 2)
    if order == "sizes outside":
        query = numbers(2, 3, 16, 17).mT
    expected = F.scaled_dot_product_attention(query, query, query)
    moved = query.to(xpu)
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with kernel_policy("sycl"):
        actual, _ = attend(moved, moved, moved)
    assert_near(actual, expected, 10, check_stride=False)
    assert actual.stride() == torch.empty_like(query).stride()


@pytest.mark.each_value
@pytest.mark.beyond_cpu(dtype=[torch.float32], causal=[True])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_results_and_gradients(
    size: tuple[int, int, int, int, int],
    causal: bool,
    dtype: torch.dtype,
    xpu: torch.device,
) -> None:
    check(operands(size, dtype), xpu, is_causal=causal)
    check(operands(size, dtype), xpu, is_causal=causal, scale=0.3)


@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_masks(dtype: torch.dtype, xpu: torch.device) -> None:
    size = (2, 3, 17, 21, 16)
    inputs = operands(size, dtype)
    seen = numbers(17, 21) > -0.5
    seen[:, 0] = True
    check(inputs, xpu, seen)
    check(inputs, xpu, numbers(2, 1, 17, 21, dtype=dtype))
    check(inputs, xpu, numbers(1, 3, 1, 21, dtype=dtype))
    check(inputs, xpu, numbers(17, 21))


def test_a_query_that_sees_nothing(xpu: torch.device) -> None:
    inputs = operands((1, 2, 17, 18, 8), torch.float32)
    seen = torch.ones(17, 18, dtype=torch.bool)
    seen[5] = False
    check(inputs, xpu, seen)


def test_dense_operands(xpu: torch.device) -> None:
    inputs = tuple(x.contiguous() for x in operands((2, 3, 17, 17, 16), torch.float32))
    check(inputs, xpu)


def test_operands_that_are_expanded(xpu: torch.device) -> None:
    """And the gradient that is sent back: along heads, batches, keys and queries."""
    query, sent = numbers(2, 3, 7, 8), numbers(2, 1, 1, 8)
    key, value = numbers(1, 1, 9, 8), numbers(2, 1, 1, 8)

    def attend(device: torch.device | str) -> list[Tensor]:
        leaves = [x.to(device).requires_grad_() for x in (query, key, value)]
        tokens = (7, 9, 9)
        expanded = [x.expand(2, 3, n, 8) for x, n in zip(leaves, tokens, strict=True)]
        result = F.scaled_dot_product_attention(*expanded)
        whole = sent.to(device).expand(2, 3, 7, 8)
        return [result.detach(), *torch.autograd.grad(result, leaves, whole)]

    with kernel_policy("sycl"):
        actual = attend(xpu)
    for mine, theirs in zip(actual, attend("cpu"), strict=True):
        assert_near(mine, theirs, 10, check_stride=False)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_lone_key_has_no_gradient(dtype: torch.dtype, xpu: torch.device) -> None:
    if dtype == torch.bfloat16 and not has_bf16():
        pytest.skip("tiles compute it here, which compare with a sum in another order")
    q, k, v = (
        (numbers(2, 2, 5, 7, dtype=dtype) * scale).to(xpu).requires_grad_()
        for scale in (1, 1, 100)
    )
    with kernel_policy("sycl"):
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        (of_query,) = torch.autograd.grad(
            made, q, numbers(2, 2, 5, 7, dtype=dtype).to(xpu)
        )
    assert of_query[:, :, 0].count_nonzero() == 0  # its weight is 1, whatever the score
    assert of_query[:, :, 1:].count_nonzero() > 0


@pytest.mark.mappings("CPU", "AUTO")
def test_several_blocks_of_queries(xpu: torch.device) -> None:
    """More scores than one block holds: a causal mask cuts each block's keys."""
    for causal in (False, True):
        for size in [(3, 4, 700, 800, 8), (2, 9, 600, 500, 8)]:
            check(operands(size, torch.float32), xpu, is_causal=causal, factor=50)


@pytest.mark.mappings("CPU")
def test_memory_does_not_grow_with_the_square(xpu: torch.device) -> None:
    """All scores of 8,192 tokens are 256 MB of float, and there are three such."""
    inputs = [numbers(1, 1, 8192, 16).to(xpu).requires_grad_() for _ in range(3)]
    torch.xpu.synchronize()
    before = torch.xpu.memory_allocated()
    torch.xpu.reset_peak_memory_stats()
    with kernel_policy("sycl"):
        F.scaled_dot_product_attention(*inputs).sum().backward()
    torch.xpu.synchronize()
    assert torch.xpu.max_memory_allocated() - before < 64 << 20


@pytest.mark.mappings("CPU")
def test_tiles_and_products_agree_in_a_capture(xpu: torch.device) -> None:
    """oneDNN is for no capture: the tiled kernels are what it records."""
    inputs = [x.to(xpu) for x in operands((2, 3, 40, 33, 20), torch.float32)]
    with kernel_policy("sycl"):
        expected = F.scaled_dot_product_attention(*inputs)
        graph = torch.xpu.XPUGraph()
        with torch.xpu.graph(graph):
            actual = F.scaled_dot_product_attention(*inputs)
        graph.replay()
        graph.replay()
    torch.xpu.synchronize()
    assert_near(actual, expected.cpu(), 10, check_stride=False)


def test_the_backend_that_is_asked_for(xpu: torch.device) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    inputs = [x.to(xpu) for x in operands((1, 2, 9, 9, 8), torch.float32)]
    _C.reset_op_report()
    with kernel_policy("sycl"), sdpa_kernel(SDPBackend.MATH):
        F.scaled_dot_product_attention(*inputs)
    assert not tiers_of(FORWARD)


def test_the_sums_are_those_of_pytorch(xpu: torch.device) -> None:
    inputs = operands((2, 3, 17, 21, 16), torch.float32)
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    expected = fused(*inputs, 0.0, False, scale=1 / math.sqrt(16))
    with kernel_policy("sycl"):
        actual = fused(*(x.to(xpu) for x in inputs), 0.0, False)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs, 10)


@pytest.mark.beyond_cpu
def test_one_sequence_with_a_stride_that_leads_nowhere(xpu: torch.device) -> None:
    """A batch of one, as torch.nn.MultiheadAttention makes it: its stride is that of
    the tokens."""
    rows = (numbers(3, 2, 8 + k)[..., :8].transpose(0, 1) for k in range(3))
    inputs = tuple(x.as_strided((1, 2, 3, 8), (x.stride(1), *x.stride())) for x in rows)
    check(inputs, xpu)


@pytest.mark.parametrize(
    "shape", [None, (3, 6), (4, 3, 6)], ids=["no mask", "mask of a head", "mask"]
)
def test_operands_without_a_batch(
    shape: tuple[int, ...] | None, xpu: torch.device
) -> None:
    """Since PyTorch 2.14 they take the fused op, too, as a batch of one."""
    inputs = (numbers(4, 3, 8), numbers(4, 6, 8), numbers(4, 6, 8))
    mask = None if shape is None else numbers(*shape) > 0
    expected = run(inputs, mask, "cpu")
    for found, wanted in zip(run(inputs, mask, xpu), expected, strict=True):
        assert_near(found, wanted)


# Of shape (2, 3, 7, 8). PyTorch's kernels for the CPU take rows of adjacent numbers alone.
LAYOUTS = {
    "contiguous": lambda x: x,
    "heads inside": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "batch inside": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.mT.contiguous().mT,
    "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2],
}


@pytest.mark.beyond_cpu
@pytest.mark.parametrize("policy", ["auto", "sycl", "native"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_result_is_pytorch_s(
    layout: str, policy: str, xpu: torch.device
) -> None:
    inputs = [LAYOUTS[layout](numbers(2, 3, 7, 8).roll(i)) for i in range(3)]
    expected = F.scaled_dot_product_attention(*inputs)
    with kernel_policy(policy):
        found = F.scaled_dot_product_attention(*(x.to(xpu) for x in inputs))
    assert found.stride() == expected.stride()
    assert_close(found.cpu(), expected, rtol=0, atol=1e-6)
    for results in zip(
        run(tuple(inputs), None, xpu), run(tuple(inputs), None, "cpu"), strict=True
    ):
        assert_close(results[0].cpu(), results[1], rtol=0, atol=1e-5)


@pytest.mark.beyond_cpu
@pytest.mark.parametrize("policy", ["sycl", "native"])
def test_sequences_whose_rows_are_not_adjacent(policy: str, xpu: torch.device) -> None:
    x = [numbers(7, 3, 8).roll(i).requires_grad_() for i in range(3)]
    parts = zip(*(each.transpose(0, 1).split([4, 3], 1) for each in x), strict=True)
    expected = torch.cat([F.scaled_dot_product_attention(*p) for p in parts], 1)
    starts = torch.tensor([0, 4, 7], dtype=torch.int32, device=xpu)
    y = [each.detach().to(xpu).mT.contiguous().mT.requires_grad_() for each in x]
    with kernel_policy(policy):
        found = varlen_attn(*y, starts, starts, 4, 4)
        assert_close(found.cpu(), expected.transpose(0, 1), rtol=0, atol=1e-6)
        grad = numbers(7, 3, 8).to(xpu).mT.contiguous().mT
        gradients = torch.autograd.grad(found, y, grad)
    wanted = torch.autograd.grad(expected, x, numbers(7, 3, 8).transpose(0, 1))
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert_close(mine.cpu(), theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mask", ["none", "of all heads", "of each head", "bool"])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_a_token_of_grouped_heads(
    groups: int, mask: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    """Those of a group are one head with many queries: one call with as many heads as
    there are groups."""
    query, key, value = (
        numbers(2, heads, tokens, 16, dtype=dtype)
        for heads, tokens in ((6, 1), (groups, 40), (groups, 40))
    )
    added = None
    if mask == "bool":
        added = numbers(2, 1, 1, 40) > -0.5
    elif mask != "none":
        added = numbers(2, 6 if mask == "of each head" else 1, 1, 40, dtype=dtype)
    wide = query.double(), key.double(), value.double()
    of_mask = added if added is None or mask == "bool" else added.double()
    options = {"scale": 0.3, "enable_gqa": True}
    wanted = F.scaled_dot_product_attention(*wide, of_mask, **options)
    given = [each.to(xpu) for each in (query, key, value)]
    _C.reset_op_report()
    found = F.scaled_dot_product_attention(
        *given, None if added is None else added.to(xpu), **options
    )
    assert found.shape == (2, 6, 1, 16)
    error = (found.cpu().double() - wanted).abs().max()
    assert error <= {torch.float32: 1e-6, torch.bfloat16: 2e-2}.get(dtype, 2e-3)
    assert tiers_of(FORWARD)


def test_gradients_of_a_token_of_grouped_heads(xpu: torch.device) -> None:
    shapes = (1, 4, 1, 8), (1, 2, 9, 8), (1, 2, 9, 8)
    inputs = tuple(numbers(*shape) for shape in shapes)
    wanted = run(inputs, None, "cpu", enable_gqa=True)
    for mine, theirs in zip(
        run(inputs, None, xpu, enable_gqa=True), wanted, strict=True
    ):
        assert_close(mine.cpu(), theirs)


def test_a_causal_token_of_grouped_heads_sees_the_first_key(xpu: torch.device) -> None:
    query, key, value = (numbers(1, h, t, 8) for h, t in ((4, 1), (2, 5), (2, 5)))
    given = [each.to(xpu) for each in (query, key, value)]
    found = F.scaled_dot_product_attention(*given, is_causal=True, enable_gqa=True)
    assert_close(found.cpu()[0, :, 0], value[0, :, 0].repeat_interleave(2, 0))
