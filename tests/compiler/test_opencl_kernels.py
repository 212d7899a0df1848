"""Kernels of OpenCL C from Inductor's loops, compared with eager mode, feature by feature.

They run on the device whose memory the host cannot read: nothing can fall back to the
host without a warning there, which is an error in these tests.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F
from torch.testing import assert_close

from xpurt import _C

pytestmark = [
    pytest.mark.mappings("GPU"),
    pytest.mark.filterwarnings("error:torch.compile runs"),
]


@pytest.fixture(autouse=True)
def strict(xpu: torch.device) -> None:
    if _C.host_reads(xpu.index):
        pytest.skip("the host can read the memory")


def floats(*sizes: int) -> Tensor:
    return torch.randn(sizes)


def integers(low: int, high: int, *sizes: int) -> Tensor:
    return torch.randint(low, high, sizes)


Case = tuple[Callable[..., Any], tuple[Any, ...]]

NARROW = (torch.int8, torch.uint8, torch.int16, torch.float16, torch.bfloat16)
CASES: dict[str, Case] = {
    "pointwise": (lambda x, y: (x + y) * 2 - y.exp(), (floats(33, 70), floats(70))),
    "bfloat16": (lambda x: (x * 3).tanh(), (floats(300).bfloat16(),)),
    "float16": (lambda x: (x * 3).tanh(), (floats(300).half(),)),
    "float64": (lambda x: x.sin() / 3, (floats(77).double(),)),
    "integers": (
        lambda x: (x // 3, x % 5, x >> 1, -x, x.abs(), x * x + 1, x / 7),
        (integers(-50, 50, 77),),
    ),
    "an integer and a bool of the same text": (
        torch.heaviside,
        (integers(-2, 3, 77).int(), integers(2, 9, 77).int()),
    ),
    "narrow integers": (lambda x: (x + 100, x * 2), (integers(0, 99, 77).byte(),)),
    "division by zero": (lambda x: x // (x - x), (integers(1, 9, 20).float(),)),
    "bools": (lambda x: (x > 0) & (x < 1) | ~(x > 0.5), (floats(33, 7),)),
    "conversions": (lambda x: (x.long(), x.bool(), x.int().half()), (floats(40) * 9,)),
    "bits": (lambda x: x.view(torch.int32) + 1, (floats(40),)),
    "two results": (lambda x: torch.frexp(x), (floats(40),)),
    "where": (lambda x: torch.where(x > 0, x, 0.5).clamp(-1, 1), (floats(9, 9),)),
    "masks": (lambda x: F.pad(x, (1, 2, 3, 4)).relu(), (floats(9, 9),)),
    "concatenation": (lambda x: torch.cat([x, x * 2, x + 1], 1), (floats(9, 9),)),
    "quotients of indices": (
        lambda x: x.roll((3, -5), (0, 1)) + x.flip(1),
        (floats(33, 70),),
    ),
    "negative quotients": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (floats(2, 3, 8, 8),),
    ),
    "tiles": (lambda x: x.t() + x, (floats(50, 50),)),
    "a transpose": (lambda x: x.t().contiguous() + 1, (floats(65, 130),)),
    "three dimensions": (
        lambda x: x.permute(2, 1, 0).contiguous() * 2 + 1,
        (floats(17, 5, 33),),
    ),
    "indices": (lambda x, i: x[i] * 2, (floats(33, 7), torch.tensor([3, -1, 5]))),
    "an embedding": (lambda x, i: F.embedding(i, x), (floats(9, 7), integers(0, 9, 5))),
    "an inner sum": (lambda x: x.sum(1), (floats(33, 70),)),
    "an outer sum": (lambda x: x.sum(0), (floats(33, 70),)),
    "a sum of all": (lambda x: x.sum(), (floats(400, 300) / 9,)),
    "a divided sum": (lambda x: x.sum(0), (floats(5000, 3) / 9,)),
    "a sum of bfloat16": (lambda x: x.sum(1), (floats(5, 300).bfloat16(),)),
    "products": (lambda x: x[:, :9].prod(1), (floats(33, 70),)),
    "largest and smallest": (
        lambda x: (x.amax(1), x.amin(0), x.long().amax(0)),
        (floats(33, 70),),
    ),
    "positions": (
        lambda x: (x.argmax(1), x.argmin(0), x.max(1), x.argmax(), x.t().argmin()),
        (floats(33, 70).round(),),
    ),
    "any and all": (lambda x: ((x > 2).any(1), (x > -9).all(0)), (floats(33, 70),)),
    "a variance": (lambda x: torch.var_mean(x, 1), (floats(33, 70) + 1000,)),
    "an outer variance": (lambda x: torch.var_mean(x, 0), (floats(33, 70) + 9,)),
    "a divided variance": (lambda x: torch.var_mean(x), (floats(400, 300) + 9,)),
    "softmax": (lambda x: x.softmax(1), (floats(33, 70),)),
    "a short softmax": (lambda x: x.softmax(1), (floats(33, 11),)),
    "layer_norm": (lambda x: F.layer_norm(x, (70,)), (floats(33, 70),)),
    "atomics": (
        lambda x, i: torch.zeros(9, 70, device=x.device).index_add(0, i, x),
        (floats(33, 70), integers(0, 9, 33)),
    ),
    "atomics of integers": (
        lambda x, i: torch.zeros(9, dtype=x.dtype, device=x.device).index_add(0, i, x),
        (integers(0, 9, 330).int(), integers(0, 9, 330)),
    ),
    "atomics of one word": (
        lambda x, i: torch.zeros(3, device=x.device).index_add(0, i, x),
        (torch.ones(100_000), integers(0, 3, 100_000)),
    ),
    **{
        f"atomics of {dtype}": (
            lambda x, i: torch.zeros_like(x[:9]).index_add(0, i, x),
            (integers(-9, 9, 330).to(dtype), integers(0, 9, 330)),
        )
        for dtype in NARROW
    },
    "special functions": (
        lambda x: (x.erf(), x.lgamma(), torch.special.i1(x), x.expm1(), x.log1p()),
        (floats(99).abs(),),
    ),
    "a number on the CPU": (lambda x, s: x * s, (floats(9), 3.5)),
    "products of matrices": (lambda x: (x @ x.t()).relu() + 1, (floats(33, 70),)),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True) + 1,
        (floats(2, 4, 16, 8),),
    ),
    "attention of transposed heads": (
        lambda x: F.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3).mT.sum(1),
        (floats(2, 16, 4, 8),),
    ),
    "a scan": (lambda x: x.cumsum(1) * 2, (floats(33, 70),)),
    "an empty result": (lambda x: x[:0] + 1, (floats(33, 70),)),
}


def on(device: torch.device, value: Any) -> Any:
    return value.to(device) if isinstance(value, Tensor) else torch.tensor(value)


@pytest.mark.one_in(3)
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("name", CASES)
def test_a_feature(xpu: torch.device, name: str) -> None:
    function, given = CASES[name]
    inputs = [on(xpu, each) for each in given]
    expected = function(*inputs)
    found = torch.compile(function)(*inputs)
    narrow = "float16" in name
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if narrow else {"rtol": 1e-4, "atol": 1e-5}
    assert_close(found, expected, equal_nan=True, **tolerance)


def test_no_atomic_sum_is_lost(xpu: torch.device) -> None:
    def total(x: Tensor, i: Tensor) -> Tensor:
        return torch.zeros(1, device=x.device).index_add(0, i, x)

    count = 1 << 20
    x, i = on(xpu, torch.ones(count)), on(xpu, torch.zeros(count, dtype=torch.int64))
    assert torch.compile(total)(x, i).item() == count


def test_ops_are_fused(xpu: torch.device) -> None:
    x = torch.randn(64, 64).to(xpu)
    _, (code,) = run_and_get_code(torch.compile(lambda x: F.gelu(x + 1).sum(1)), x)
    assert code.count("__kernel void") == 1
    assert "normal_below_f" in code or "erf" in code


def test_sizes_that_change_are_arguments(xpu: torch.device) -> None:
    def function(x: Tensor) -> Tensor:
        return (x * 2).sum(0) + x.softmax(1).amax(0)

    compiled = torch.compile(function, dynamic=True)
    compiled(torch.randn(5, 6).to(xpu))
    for sizes in ((3, 7), (70, 300), (4, 16)):
        x = torch.randn(sizes).to(xpu)
        with torch.compiler.set_stance("fail_on_recompile"):
            assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)


def test_an_index_out_of_range(xpu: torch.device) -> None:
    x, i = torch.randn(4).to(xpu), torch.tensor([1, 7]).to(xpu)
    # Its message is not that of the kernel.
    torch._assert_async(torch.ones(1, dtype=torch.bool).to(xpu), "an assertion")
    with pytest.raises(IndexError, match="index out of range"):
        torch.compile(lambda x, i: x[i] + 1)(x, i).sum().item()


def test_an_input_that_is_written(xpu: torch.device) -> None:
    @torch.compile
    def change(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        y[1:3] += x.sum()
        return x + y

    x, y = torch.ones(5, device=xpu), torch.zeros(5, device=xpu)
    assert change(x, y).tolist() == [2.0, 12.0, 12.0, 2.0, 2.0]
    assert x.tolist() == [2.0] * 5
    assert y.tolist() == [0.0, 10.0, 10.0, 0.0, 0.0]


def test_random_numbers(xpu: torch.device) -> None:
    def draw(x: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.rand_like(x),
            torch.randn_like(x),
            torch.randint(-5, 900, x.shape, device=x.device),
            F.dropout(x, 0.25),
        )

    compiled = torch.compile(draw)
    x = torch.ones(100, 100, device=xpu)
    runs = []
    for _ in range(2):
        torch.xpu.manual_seed(1)
        runs.append(compiled(x))
    assert all(map(torch.equal, *runs))
    uniform, normal, integer, dropped = (each.float().cpu() for each in runs[0])
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert_close(uniform.mean(), torch.tensor(0.5), rtol=0, atol=0.02)
    assert_close(normal.mean(), torch.tensor(0.0), rtol=0, atol=0.05)
    assert_close(normal.std(), torch.tensor(1.0), rtol=0, atol=0.05)
    assert integer.min() >= -5
    assert integer.max() < 900
    assert integer.max() > 850
    assert_close(dropped.mean(), torch.tensor(1.0), rtol=0, atol=0.05)
    assert not torch.equal(compiled(x)[0].cpu(), uniform)


def test_random_numbers_of_eager_mode(xpu: torch.device) -> None:
    def draw(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.rand_like(x) * 2, F.dropout(x, 0.25) + 1

    x = torch.ones(100, device=xpu)
    with torch._inductor.config.patch(fallback_random=True):
        torch.xpu.manual_seed(1)
        found = torch.compile(draw)(x)
    torch.xpu.manual_seed(1)
    assert all(map(torch.equal, found, draw(x)))


IN_PARTS: dict[str, Case] = {
    "channels": (
        lambda x, y: x * y[:, None, None] + 1,
        (floats(3, 5, 9, 11), floats(5)),
    ),
    "channels of whole groups": (
        lambda x, y: x * y[:, None, None] + 1,
        (floats(3, 5, 16, 64), floats(5)),
    ),
    "rows": (lambda x, y: (x + y).tanh(), (floats(7, 70), floats(70))),
    "three sizes": (
        lambda x, y, z: x + y[:, None] + z,
        (floats(6, 5, 96), floats(5), floats(96)),
    ),
    "a reduced range": (
        lambda x: torch.var_mean(x, (0, 2, 3)),
        (floats(3, 2, 20, 17),),
    ),
    "a range reduced by a work-item": (
        lambda x: x.sum((0, 2)),
        (floats(6, 5, 3, 40),),
    ),
    "results of work-items": (lambda x: x.sum(1), (floats(3, 20, 160),)),
}


@pytest.mark.parametrize("name", IN_PARTS)
def test_a_range_has_two_parts(name: str, xpu: torch.device) -> None:
    """Indices of a dimension that operands are broadcast along take no division."""
    function, inputs = IN_PARTS[name]
    moved = [x.to(xpu) for x in inputs]
    compiled = torch.compile(function, fullgraph=True)
    actual, (code,) = run_and_get_code(compiled, *moved)
    assert_close(
        [x.cpu() for x in actual] if isinstance(actual, tuple) else actual.cpu(),
        list(function(*inputs)) if isinstance(actual, tuple) else function(*inputs),
        rtol=1e-5,
        atol=1e-5,
    )
    assert "outer = get_global_id(1)" in code or "outer = 0;" in code


def test_kernels_of_the_same_text_for_different_sizes(xpu: torch.device) -> None:
    """Whole work-groups cover both ranges, so the text has no size."""

    def program(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return (a @ a).sin(), (b @ b).sin()

    a, b = torch.randn(16, 16).to(xpu), torch.randn(64, 64).to(xpu)
    compiled = torch.compile(program)
    assert_close(compiled(a, b), program(a, b), rtol=1e-4, atol=1e-4)


def test_a_size_that_only_an_index_has(xpu: torch.device) -> None:
    compiled = torch.compile(lambda x: F.max_pool2d(x, 3, 2, 1), dynamic=True)
    for side in (9, 14):
        x = torch.randn(2, 3, side, side).to(xpu)
        assert_close(compiled(x), F.max_pool2d(x, 3, 2, 1))


def test_a_result_of_a_loop_that_the_same_kernel_reads(xpu: torch.device) -> None:
    """It is no argument of the kernel, so no loop may store it."""
    x = torch.randn(48, 12).to(xpu).requires_grad_()
    compiled = torch.compile(lambda x: F.dropout(x.softmax(-1), 0.5).sum(-1))
    found = compiled(x)
    assert 0 < float(found.min()) <= float(found.max()) < 2
    found.sum().backward()
    assert x.grad is not None


FOUR_VECTORS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...], bool]] = {
    "four functions": (lambda x: x.sin().exp().tanh().cos(), (300,), True),
    "three functions": (lambda x: x.sin().exp().tanh(), (300,), False),
    "an outer sum": (lambda x: x.sum(0), (33, 70), True),
    "an inner sum": (lambda x: x.sum(1), (33, 70), False),
    "a short range": (lambda x: x.sin().exp().tanh().cos(), (30,), False),
}


@pytest.mark.parametrize("name", FOUR_VECTORS)
def test_work_items_that_wait_for_each_other(name: str, xpu: torch.device) -> None:
    """See Note [Lanes of generated kernels]."""
    function, sizes, expected = FOUR_VECTORS[name]
    x = floats(*sizes)
    actual, (code,) = run_and_get_code(torch.compile(function), x.to(xpu))
    assert_close(actual.cpu(), function(x), rtol=1e-5, atol=1e-5)
    assert ("FOUR_VECTORS" in code) == expected


TILES: dict[str, Case] = {
    "whole tiles": (lambda x, y: x + y.t(), (floats(48, 64), floats(64, 48))),
    "tiles at the edge": (lambda x, y: x + y.t(), (floats(50, 70), floats(70, 50))),
    "images of whole tiles": (
        lambda x: x.permute(0, 3, 1, 2).contiguous() + 1,
        (floats(2, 6, 8, 32),),
    ),
    "images": (
        lambda x: x.permute(0, 3, 1, 2).contiguous() + 1,
        (floats(3, 7, 9, 20),),
    ),
    "float16": (
        lambda x, y: x * y.t() + x.t() * y,
        (floats(40, 40).half(), floats(40, 40).half()),
    ),
}


@pytest.mark.parametrize("name", TILES)
def test_transposed_operands_have_tiles(name: str, xpu: torch.device) -> None:
    function, inputs = TILES[name]
    moved = [x.to(xpu) for x in inputs]
    actual, (code,) = run_and_get_code(torch.compile(function), *moved)
    assert_close(actual.cpu(), function(*inputs), rtol=1e-2, atol=1e-3)
    assert "TILE0" in code


def test_transposed_operands_of_sizes_that_change(xpu: torch.device) -> None:
    compiled = torch.compile(lambda x, y: x + y.t(), dynamic=True)
    for rows, columns in ((48, 64), (33, 70), (5, 17)):
        x, y = floats(rows, columns), floats(columns, rows)
        assert_close(compiled(x.to(xpu), y.to(xpu)).cpu(), x + y.t())
