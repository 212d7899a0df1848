"""torch.compile of flex_attention on xpu, compared with what PyTorch computes op by op on
the CPU in float64: errors are at most twice those of the same in the type of the call."""

from typing import Any

import pytest
import torch
from compiler import flex_cases
from compiler.flex_cases import CASES, few_first
from torch import Tensor
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.experimental._paged_attention import PagedAttention
from torch.testing import assert_close

import xpurt
from xpurt.compiler.flex import blocks

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.filterwarnings("ignore:flex_attention called without"),
]


def _compiled(function: Any) -> Any:
    return torch.compile(function, fullgraph=True)


def _eager(function: Any) -> Any:
    return function


def _check(xpu: torch.device, name: str, *, grad: bool) -> None:
    torch.manual_seed(0)
    case = CASES[name]
    given = flex_cases.operands(case)
    exact = flex_cases.run(case, [each.double() for each in given], _eager, grad=grad)
    plain = flex_cases.run(case, given, _eager, grad=grad)
    on_xpu = [each.to(xpu) for each in given]
    found = flex_cases.run(case, on_xpu, _compiled, grad=grad)
    for each, of_plain, of_exact in zip(found, plain, exact, strict=True):
        assert each.dtype == of_plain.dtype
        assert each.stride() == of_plain.stride()
        _check_error(each, of_plain, of_exact)


def _check_error(found: Tensor, plain: Tensor, exact: Tensor) -> None:
    """A row that sees no key has the logarithm -inf."""
    assert torch.equal(found == -torch.inf, exact == -torch.inf)
    found, plain, exact = (each.nan_to_num(neginf=0) for each in (found, plain, exact))
    few = 8 * torch.finfo(found.dtype).eps * exact.abs().max()
    allowed = 2 * (plain - exact).abs().max() + few
    assert (found - exact).abs().max() <= allowed


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_each_case(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=True)


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_without_gradients(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=False)


@pytest.mark.one_in(2)
@pytest.mark.mappings("GPU")
@pytest.mark.parametrize("name", few_first())
def test_on_gpus(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=True)


@pytest.mark.rest
@pytest.mark.mappings("AUTO")
@pytest.mark.parametrize("name", few_first(1))
def test_beside_gpus(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=True)


@pytest.mark.rest
@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_kernels(xpu: torch.device, name: str) -> None:
    with xpurt.kernel_policy("sycl"):
        _check(xpu, name, grad=True)


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_blocks_of_queries(
    xpu: torch.device, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_SCORES", 2 * 4 * flex_cases.KEYS * 32)
    _check(xpu, name, grad=True)


def test_rows_at_a_time() -> None:
    assert blocks.rows_at_a_time(blocks._SCORES // 100, 100) is None
    assert blocks.rows_at_a_time(blocks._SCORES // 100, 101) == 96
    assert blocks.rows_at_a_time(blocks._SCORES, 101) == 16


def test_blocks_that_are_not_listed_are_masked(xpu: torch.device) -> None:
    """As by PyTorch's fused kernels; eager mode asks the function alone."""
    query, key, value = (torch.randn(1, 1, 32, 16).to(xpu) for _ in range(3))
    count = torch.ones(1, 1, 2, dtype=torch.int32, device=xpu)
    listed = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32, device=xpu)
    mask = flex.BlockMask.from_kv_blocks(count, listed, BLOCK_SIZE=16)
    call = torch.compile(flex.flex_attention, fullgraph=True)
    shown = torch.block_diag(torch.ones(16, 16), torch.ones(16, 16)).bool().to(xpu)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=shown
    )
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            found = call(query.requires_grad_(grad), key, value, block_mask=mask)
        assert_close(found, expected)


@pytest.mark.rest
def test_sizes_that_change(xpu: torch.device) -> None:
    """Of the queries, of the mask and of a captured tensor that is differentiated."""

    def attend(
        query: Tensor, key: Tensor, value: Tensor, table: Tensor, mask: Any
    ) -> Tensor:
        def with_table(
            score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor
        ) -> Any:
            return score + table[q - k + len(table) // 2]

        return flex.flex_attention(query, key, value, with_table, mask)

    call = torch.compile(attend, dynamic=True, fullgraph=True)
    for length in (37, 65):
        mask = flex.create_block_mask(
            _causal, None, None, length, length, xpu, BLOCK_SIZE=16
        )
        given = [torch.randn(1, 2, length, 16) for _ in range(3)]
        given.append(torch.randn(2 * length))
        given = [each.to(xpu).requires_grad_() for each in given]
        found, expected = call(*given, mask), attend(*given, mask)
        assert_close(found, expected)
        assert_close(
            torch.autograd.grad(found.sin().sum(), given),
            torch.autograd.grad(expected.sin().sum(), given),
            atol=2e-5,
            rtol=1e-4,
        )


def _causal(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return q >= k


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_two_calls_under_autocast(xpu: torch.device, policy: str) -> None:
    """Both calls have the same functions, and Dynamo gives them to both."""
    mask = flex.create_block_mask(_causal, None, None, 48, 48, xpu, BLOCK_SIZE=16)

    def attend(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(2):
            y = (x @ w).unflatten(-1, (2, 16)).transpose(1, 2)
            x = flex.flex_attention(y, y, y, block_mask=mask).transpose(1, 2).flatten(2)
        return x

    given = [torch.randn(2, 48, 32), torch.randn(32, 32) / 6]
    given = [each.to(xpu).requires_grad_() for each in given]
    call = torch.compile(attend, fullgraph=True)
    with xpurt.kernel_policy(policy):
        with torch.autocast("xpu", torch.bfloat16):
            found, expected = call(*given), attend(*given)
        assert found.dtype == expected.dtype
        assert_close(found, expected, atol=0.05, rtol=0.05)
        assert_close(
            torch.autograd.grad(found.float().sin().sum(), given),
            torch.autograd.grad(expected.float().sin().sum(), given),
            atol=0.5,
            rtol=0.1,
        )


@pytest.mark.mappings("CPU", "GPU")
def test_greatest_scores(xpu: torch.device) -> None:
    """PyTorch gives none on the CPU."""
    query, key, value = (torch.randn(1, 2, 32, 16).to(xpu) for _ in range(3))
    call = torch.compile(flex.flex_attention, fullgraph=True)
    _, others = call(
        query, key, value, return_aux=flex.AuxRequest(lse=True, max_scores=True)
    )
    scores = query @ key.mT / 4
    assert_close(others.max_scores, scores.amax(-1))
    assert_close(others.lse, scores.logsumexp(-1))


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU", "GPU")
def test_pages_of_keys(xpu: torch.device) -> None:
    """A program that decodes: one query a sequence, whose keys are in pages in any order,
    as PagedAttention puts them there."""
    batch, heads, length, width, page = 2, 2, 48, 16, 16
    pages = PagedAttention(8, page, batch, device=str(xpu))
    given = [torch.randn(batch, heads, length, width).to(xpu) for _ in range(2)]
    caches = [torch.zeros(1, heads, 8 * page, width).to(xpu) for _ in range(2)]
    for n in torch.tensor([length, 20]).tolist():
        for i in range(batch):
            pages.reserve(torch.tensor(i, device=xpu), torch.tensor(n, device=xpu))
    rows = torch.arange(batch, device=xpu)
    positions = torch.arange(length, device=xpu).expand(batch, -1)
    pages.assign(rows, positions, *given, *caches)
    query = torch.randn(batch, heads, 1, width).to(xpu)

    def seen(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return k < 40 - b * 7

    mask = flex.create_block_mask(seen, batch, None, 1, length, xpu, BLOCK_SIZE=page)
    paged = pages.convert_logical_block_mask(mask)
    score = pages.get_score_mod(None)
    call = torch.compile(flex.flex_attention, fullgraph=True)
    found = call(query, *caches, score, paged)
    assert_close(found, flex.flex_attention(query, *given, None, mask))


@pytest.mark.rest
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("grad", [False, True])
def test_memory_of_long_sequences(
    xpu: torch.device, grad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many tokens take twice the memory, not four times. Without a block mask
    PyTorch's kernel for the CPU has all scores of a head in memory."""
    monkeypatch.setattr(blocks, "_SCORES", 1 << 18)
    call = torch.compile(flex.flex_attention, fullgraph=True)
    peaks = []
    for length in (1024, 2048):
        given = [torch.randn(1, 1, length, 16).to(xpu) for _ in range(3)]
        for each in given:
            each.requires_grad_(grad)
        torch.xpu.synchronize()
        torch.xpu.reset_peak_memory_stats()
        before = torch.xpu.memory_allocated()
        found = call(*given)
        if grad:
            torch.autograd.grad(found.sum(), given)
        torch.xpu.synchronize()
        peaks.append(torch.xpu.max_memory_allocated() - before)
    assert peaks[1] < 2.2 * peaks[0]
