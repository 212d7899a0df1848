"""Matrix products by oneDNN and by tiles, in every layout."""

import warnings

import pytest
import torch

from kernels.kernel_forced import on_queue, tiers_of
from kernels.kernel_tolerance import assert_near
from xpurt import _C, kernel_policy

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.rand(shape, generator=generator).sub(0.5).to(dtype)


def layouts(host: torch.Tensor) -> list[torch.Tensor]:
    """The same matrix by rows, by columns, and with gaps."""
    gaps = torch.zeros(*host.shape[:-1], host.shape[-1] * 2).to(host.dtype)
    gaps[..., ::2] = host
    return [host, host.mT.contiguous().mT, gaps[..., ::2]]


def moved(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Keeps the strides."""
    last = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    whole = x.as_strided((last + 1,), (1,)).to(device)
    return whole.as_strided(x.shape, x.stride())


@pytest.mark.beyond_cpu(dtype=[torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [(1, 1, 1), (5, 7, 3), (64, 65, 130), (1, 200, 33)])
def test_mm_and_bmm(
    size: tuple[int, int, int], dtype: torch.dtype, xpu: torch.device
) -> None:
    m, n, k = size
    for a in layouts(numbers(m, k, dtype=dtype)):
        for b in layouts(numbers(k, n, dtype=dtype)):
            actual = on_queue(
                "aten::mm", lambda a=a, b=b: torch.mm(moved(a, xpu), moved(b, xpu))
            )
            assert_near(actual, torch.mm(a, b), 10)
    for a in layouts(numbers(3, m, k, dtype=dtype)):
        for b in layouts(numbers(3, k, n, dtype=dtype)):
            actual = on_queue(
                "aten::bmm", lambda a=a, b=b: torch.bmm(moved(a, xpu), moved(b, xpu))
            )
            assert_near(actual, torch.bmm(a, b), 10)


@pytest.mark.beyond_cpu(dtype=[torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    ("alpha", "beta"), [(1, 1), (0.5, 1), (1, 2), (2, 0.5), (1, 0)]
)
def test_what_is_added(
    alpha: float, beta: float, dtype: torch.dtype, xpu: torch.device
) -> None:
    a, b = numbers(9, 20, dtype=dtype), numbers(20, 12, dtype=dtype)
    for shape in [(12,), (9, 12), (9, 1), (1, 12), (1,), ()]:
        c = numbers(*shape, dtype=dtype)
        if beta == 0:
            c = torch.full_like(c, float("nan"))
        expected = torch.addmm(c, a, b, alpha=alpha, beta=beta)
        actual = on_queue(
            "aten::addmm",
            lambda c=c: torch.addmm(
                c.to(xpu), a.to(xpu), b.to(xpu), alpha=alpha, beta=beta
            ),
        )
        assert_near(actual, expected, 10)
    x, y, z = (numbers(2, *s, dtype=dtype) for s in ((4, 5), (4, 3), (3, 5)))
    expected = torch.baddbmm(x, y, z, alpha=alpha, beta=beta)
    actual = on_queue(
        "aten::baddbmm",
        lambda: torch.baddbmm(x.to(xpu), y.to(xpu), z.to(xpu), alpha=alpha, beta=beta),
    )
    assert_near(actual, expected, 10)


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_in_place_and_into_out(xpu: torch.device) -> None:
    a, b, c = numbers(6, 4), numbers(4, 5), numbers(6, 5)
    ours = c.to(xpu)
    on_queue("aten::addmm_", lambda: ours.addmm_(a.to(xpu), b.to(xpu), beta=0.5))
    assert_near(ours, c.clone().addmm_(a, b, beta=0.5), 4)
    out = torch.zeros(5, 6, device=xpu).t()
    on_queue("aten::mm", lambda: torch.mm(a.to(xpu), b.to(xpu), out=out))
    torch.testing.assert_close(out.cpu(), torch.mm(a, b))
    gaps = torch.zeros(6, 10, device=xpu)
    on_queue("aten::mm", lambda: torch.mm(a.to(xpu), b.to(xpu), out=gaps[:, ::2]))
    torch.testing.assert_close(gaps[:, ::2].cpu(), torch.mm(a, b))
    assert (gaps[:, 1::2] == 0).all()
    out = torch.empty(0, device=xpu)
    on_queue("aten::mm", lambda: torch.mm(a.to(xpu), b.to(xpu), out=out))
    torch.testing.assert_close(out.cpu(), torch.mm(a, b))


@pytest.mark.mappings("CPU", "GPU")
def test_a_result_of_another_size_is_resized_with_a_warning(xpu: torch.device) -> None:
    a, b = numbers(6, 4), numbers(4, 5)
    out = torch.zeros(2, 2, device=xpu)
    with kernel_policy("sycl"), pytest.warns(UserWarning, match="was resized"):
        torch.mm(a.to(xpu), b.to(xpu), out=out)
    torch.testing.assert_close(out.cpu(), torch.mm(a, b))


@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("gelu", [False, True])
def test_a_product_with_an_activation(
    gelu: bool, dtype: torch.dtype, xpu: torch.device
) -> None:
    a, b = numbers(9, 20, dtype=dtype), numbers(20, 12, dtype=dtype)
    a[3, 4] = float("nan")
    function = torch._addmm_activation
    for shape, how in [((12,), {}), ((9, 12), {"alpha": 0.5, "beta": 2.0})]:
        c = numbers(*shape, dtype=dtype)
        expected = function(c, a, b, use_gelu=gelu, **how)
        actual = on_queue(
            "aten::_addmm_activation",
            lambda c=c, how=how: function(
                c.to(xpu), a.to(xpu), b.to(xpu), use_gelu=gelu, **how
            ),
        )
        assert_near(actual, expected, 10)


@pytest.mark.parametrize("size", [(1, 1, 1), (18, 7, 33), (40, 64, 70)])
def test_products_of_int8(size: tuple[int, int, int], xpu: torch.device) -> None:
    m, n, k = size
    generator = torch.Generator().manual_seed(m)
    a = torch.randint(-128, 128, (m, k), generator=generator, dtype=torch.int8)
    b = torch.randint(-128, 128, (k, n), generator=generator, dtype=torch.int8)
    for left, right in [(a, b), (a, b.t().contiguous().t())]:
        actual = on_queue(
            "aten::_int_mm",
            lambda x=left, y=right: torch._int_mm(moved(x, xpu), moved(y, xpu)),
        )
        assert_near(actual, torch._int_mm(left, right))
    out = torch.empty(m, n, dtype=torch.int32, device=xpu)
    on_queue("aten::_int_mm", lambda: torch._int_mm(a.to(xpu), b.to(xpu), out=out))
    assert torch.equal(out.cpu(), torch._int_mm(a, b))


def test_empty_matrices(xpu: torch.device) -> None:
    for m, n, k in [(0, 3, 2), (3, 0, 2), (3, 2, 0)]:
        a, b = torch.ones(m, k), torch.ones(k, n)
        actual = on_queue("aten::mm", lambda a=a, b=b: a.to(xpu) @ b.to(xpu))
        assert_near(actual, a @ b)


def test_expanded_operands(xpu: torch.device) -> None:
    a, b = numbers(1, 4).expand(6, 4), numbers(4, 1).expand(4, 5)
    actual = on_queue(
        "aten::mm",
        lambda: numbers(1, 4).to(xpu).expand(6, 4) @ numbers(4, 1).to(xpu).expand(4, 5),
    )
    assert_near(actual, a @ b, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_linear_layer_and_its_gradients(
    dtype: torch.dtype, xpu: torch.device
) -> None:
    layer = torch.nn.Linear(20, 7).to(dtype)
    ours = torch.nn.Linear(20, 7).to(dtype)
    ours.load_state_dict(layer.state_dict())
    ours = ours.to(xpu)
    x = numbers(4, 3, 20, dtype=dtype)
    layer(x).sum().backward()
    _C.reset_op_report()
    with kernel_policy("sycl"):
        result = ours(x.to(xpu))
        result.sum().backward()
    assert_near(result.detach(), layer(x).detach(), 10)
    assert_near(ours.weight.grad, layer.weight.grad, 10)
    assert_near(ours.bias.grad, layer.bias.grad, 10)
    products = {r[0]: r[1] for r in _C.op_report() if "mm" in r[0]}
    assert products
    assert set(products.values()) <= {"onednn", "sycl"}


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_shapes_that_do_not_fit_are_refused_as_by_pytorch(xpu: torch.device) -> None:
    """Nothing is copied for them first, which would be warned of."""
    for function, shapes in [
        (torch.mm, [(2, 3), (2, 3)]),
        (torch.mm, [(3,), (3, 3)]),
        (torch.bmm, [(2, 3, 4), (3, 4, 5)]),
        (torch.bmm, [(2, 3, 4), (2, 3, 4)]),
        (torch.addmm, [(2,), (2, 3), (3, 4)]),
        (torch.addmm, [(4,), (2, 3), (2, 4)]),
        (torch.baddbmm, [(7,), (2, 3, 4), (2, 4, 5)]),
        (torch._addmm_activation, [(4,), (2, 3), (2, 4)]),
    ]:
        operands = [torch.ones(shape) for shape in shapes]
        with pytest.raises(RuntimeError) as expected:
            function(*operands)
        _C.reset_op_report()
        with warnings.catch_warnings(), kernel_policy("sycl"):
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError) as actual:
                function(*(x.to(xpu) for x in operands))
        assert str(actual.value) == str(expected.value)
        assert not tiers_of(f"aten::{function.__name__}")
