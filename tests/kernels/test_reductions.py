"""Reductions along every choice of dimensions, and the softmax family."""

from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from kernels.kernel_forced import on_queue
from kernels.kernel_tolerance import assert_near
from xpurt import kernel_policy

NAN = float("nan")
SHAPE = (4, 3, 17, 5)
DIMS = [d for n in range(1, 5) for d in combinations(range(4), n)]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64]


def numbers(dtype: torch.dtype, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    values = torch.rand(shape, generator=generator) * 2 - 1
    return (values if dtype.is_floating_point else values * 3).to(dtype)


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(keepdim=[False], name=["mean", "amax"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_every_choice_of_dimensions(
    name: str, keepdim: bool, xpu: torch.device
) -> None:
    function = getattr(torch, name)
    host = numbers(torch.float32)
    for dims in DIMS:
        for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
            x, moved = host.permute(order), host.to(xpu).permute(order)
            actual = on_queue(
                f"aten::{name}",
                lambda m=moved, d=dims: function(m, dim=d, keepdim=keepdim),
            )
            assert_near(actual, function(x, dim=dims, keepdim=keepdim), 4)


@pytest.mark.one_in(4)
@pytest.mark.beyond_cpu(dtype=[torch.bfloat16, torch.bool, torch.int32])
@pytest.mark.parametrize("dtype", FLOATS + INTS, ids=str)
def test_every_type(dtype: torch.dtype, xpu: torch.device) -> None:
    host = numbers(dtype)
    moved = host.to(xpu)
    names = ["sum", "prod", "amax", "amin", "any", "all", "max", "min"]
    if dtype.is_floating_point:
        names.append("mean")
    for name in names:
        function = getattr(torch, name)
        actual = on_queue(f"aten::{name}", lambda f=function: f(moved))
        assert_near(actual, function(host), 20)
    for dim in (0, 2, -1):
        for name in ("sum", "prod", "any", "all"):
            function = getattr(torch, name)
            actual = on_queue(f"aten::{name}", lambda f=function, d=dim: f(moved, d))
            assert_near(actual, function(host, dim), 4)


def test_the_type_of_the_result_can_be_chosen(xpu: torch.device) -> None:
    for source, target in [
        (torch.float32, torch.float64),
        (torch.float16, torch.float32),
        (torch.int32, torch.float32),
        (torch.int8, torch.int32),
        (torch.float32, torch.int64),
    ]:
        host = numbers(source)
        actual = on_queue(
            "aten::sum", lambda h=host, t=target: h.to(xpu).sum((0, 2), dtype=t)
        )
        assert_near(actual, host.sum((0, 2), dtype=target), 4)
    host = numbers(torch.int32)
    actual = on_queue("aten::mean", lambda: host.to(xpu).mean(1, dtype=torch.float32))
    assert_near(actual, host.mean(1, dtype=torch.float32))


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((300_007,), (0,)),
        ((3, 100_003), (1,)),
        ((100_003, 3), (0,)),
        ((20_001, 40), (0,)),
        ((64, 5, 1024), (0, 2)),
        ((5, 64, 1024), (0, 1)),
        ((2, 200_003, 2), (1,)),
    ],
)
def test_long_reductions_take_several_passes(
    shape: tuple[int, ...], dims: tuple[int, ...], xpu: torch.device
) -> None:
    host = numbers(torch.float32, shape)
    moved = host.to(xpu)
    actual = on_queue("aten::sum", lambda: moved.sum(dims))
    exact = host.double().sum(dims)
    torch.testing.assert_close(actual.cpu().double(), exact, rtol=1e-4, atol=2e-2)
    assert_near(on_queue("aten::amax", lambda: moved.amax(dims)), host.amax(dims))
    actual = on_queue("aten::mean", lambda: moved.mean(dims))
    torch.testing.assert_close(actual.cpu(), host.mean(dims), rtol=1e-4, atol=1e-6)


# The number of kept rows along the second dimension of the range is no multiple of the
# work-group's, and the long dimension is divided: padded work-items have no row.
@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
@pytest.mark.parametrize(
    "shape",
    [(10, 10_000, 10), (9, 10_000, 10), (5, 16_385, 20), (7, 12_289, 9), (3, 4097, 20)],
    ids=str,
)
def test_a_long_middle_dimension(shape: tuple[int, ...], xpu: torch.device) -> None:
    host = numbers(torch.float32, shape)
    exact, moved = host.double(), host.to(xpu)
    for name in ("sum", "mean", "var", "std", "logsumexp", "nansum"):
        function = getattr(torch, name)
        with kernel_policy("sycl"):
            actual = function(moved, 1)
        expected = function(exact, 1)
        assert_close(actual.cpu().double(), expected, rtol=1e-4, atol=2e-3)
    ones = torch.ones(shape, device=xpu)
    for name in ("sum", "count_nonzero"):
        with kernel_policy("sycl"):
            counts = getattr(torch, name)(ones, 1)
        assert (counts == shape[1]).all()


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_nan_and_infinity(xpu: torch.device) -> None:
    host = torch.tensor([[1.0, NAN, 3.0], [float("inf"), 1.0, float("-inf")]])
    for name in ("sum", "mean", "amax", "amin", "any", "all"):
        function = getattr(torch, name)
        for dim in (0, 1):
            actual = on_queue(
                f"aten::{name}", lambda f=function, d=dim: f(host.to(xpu), dim=d)
            )
            assert_near(actual, function(host, dim=dim))


def test_nothing_to_reduce(xpu: torch.device) -> None:
    host = torch.zeros(3, 0, 2)
    for name in ("sum", "mean", "prod", "any", "all"):
        function = getattr(torch, name)
        assert_near(
            on_queue(f"aten::{name}", lambda f=function: f(host.to(xpu), dim=1)),
            function(host, dim=1),
        )
    with kernel_policy("sycl"), pytest.raises((RuntimeError, IndexError)):
        host.to(xpu).amax(1)


def test_reducing_no_dimension_and_a_single_number(xpu: torch.device) -> None:
    number = torch.tensor(2.5)
    assert_near(on_queue("aten::sum", lambda: number.to(xpu).sum()), number.sum())
    assert_near(on_queue("aten::sum", lambda: number.to(xpu).sum(0)), number.sum(0))
    host = torch.ones(4).expand(3, 4)
    actual = on_queue(
        "aten::sum", lambda: torch.ones(4, device=xpu).expand(3, 4).sum(0)
    )
    assert_near(actual, host.sum(0))


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_results_go_where_the_caller_wants_them(xpu: torch.device) -> None:
    host = numbers(torch.float32)
    out = torch.empty(2, 20, 3, device=xpu).transpose(1, 2)[:, :, :5]
    expected = torch.empty(4, 5)
    torch.sum(host, (1, 2), out=expected)
    whole = torch.zeros(4, 10, device=xpu)
    target = whole[:, ::2]
    on_queue("aten::sum", lambda: torch.sum(host.to(xpu), (1, 2), out=target))
    torch.testing.assert_close(target.cpu(), expected)
    assert (whole[:, 1::2] == 0).all()
    del out


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(dtype=[torch.float32, torch.float16])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_and_its_gradient(
    name: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    function = getattr(torch, name)
    for shape in [(5,), (3, 70), (2, 3, 33), (4, 1, 5), (1000, 3)]:
        for dim in range(len(shape)):
            host = (numbers(dtype, shape) * 8).requires_grad_()
            moved = host.detach().to(xpu).requires_grad_()
            expected = function(host, dim)
            actual = on_queue(f"aten::_{name}", lambda m=moved, d=dim: function(m, d))
            assert_near(actual.detach(), expected.detach(), 4)
            gradient = numbers(dtype, shape)
            expected.backward(gradient)
            on_queue(
                f"aten::_{name}_backward_data",
                lambda a=actual, g=gradient: a.backward(g.to(xpu)),
            )
            assert_near(moved.grad, host.grad, 8)


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_softmax_of_large_equal_and_infinite_numbers(xpu: torch.device) -> None:
    host = torch.tensor(
        [
            [1e4, 1e4, -1e4],
            [0.0, float("-inf"), 0.0],
            [NAN, 1.0, 2.0],
            [88.0, 90.0, 1e30],
        ]
    )
    for function in (torch.softmax, torch.log_softmax):
        for dim in (0, 1):
            actual = on_queue(
                f"aten::_{function.__name__}",
                lambda f=function, d=dim: f(host.to(xpu), d),
            )
            assert_near(actual, function(host, dim))
    empty = torch.zeros(0, 3)
    assert torch.softmax(empty.to(xpu), 1).shape == (0, 3)
