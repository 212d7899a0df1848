"""Calls that PyTorch's CPU kernels refuse for a type, a number or a length are refused
with the same error."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import xpurt

Made = Callable[..., Tensor]
Call = Callable[[Made], object]  # of a function that makes ones: o(2, 3), o(2, 3, long)
HALF, DOUBLE, INT, LONG = torch.half, torch.double, torch.int32, torch.int64
BYTE, BOOL = torch.uint8, torch.bool


def into(op: Callable[..., Any], dtype: torch.dtype) -> Call:
    return lambda o: op(o(3, 3, LONG), o(0, dtype))


def zeros(x: Tensor) -> Tensor:
    return torch.zeros_like(x, dtype=LONG)


OUT: dict[str, Callable[[Tensor, Tensor], object]] = {
    "addmv": lambda x, out: torch.addmv(x[0], x, x[0], out=out),
    "argmax": lambda x, out: torch.argmax(x, 0, out=out),
    "cross": lambda x, out: torch.cross(x, x, dim=1, out=out),
    "index_add": lambda x, out: torch.index_add(x, 0, x[0] - 1, x, out=out),
    "index_copy": lambda x, out: torch.index_copy(x, 0, x[0] - 1, x, out=out),
    "masked_select": lambda x, out: torch.masked_select(x, x > 0, out=out),
    "mode": lambda x, out: torch.mode(x, 0, out=(out, zeros(out))),
    "msort": lambda x, out: torch.msort(x, out=out),
    "pad": lambda x, out: torch._C._nn.reflection_pad1d(x, (1, 1), out=out),
    "scatter_add": lambda x, out: torch.scatter_add(x, 0, zeros(x), x, out=out),
    "scatter_reduce": lambda x, out: torch.scatter_reduce(
        x, 0, zeros(x), x, "sum", out=out
    ),
    "tril": lambda x, out: torch.tril(x, out=out),
}
# Results that are indices.
INDICES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "searchsorted": lambda x, out: torch.searchsorted(x[0], x, out=out),
    "bucketize": lambda x, out: torch.bucketize(x, x[0], out=out),
    "nonzero": lambda x, out: torch.nonzero(x, out=out),
    "nonzero_static": lambda x, out: torch.nonzero_static(x, size=2, out=out),
    "kthvalue": lambda x, out: torch.kthvalue(x, 2, out=(out.clone(), out)),
    "median": lambda x, out: torch.median(x, 0, out=(out.clone(), out)),
    "mode": lambda x, out: torch.mode(x, 0, out=(out.clone(), out)),
    "max": lambda x, out: torch.max(x, 0, out=(out.clone(), out)),
    "argmax": lambda x, out: torch.argmax(x, 0, out=out),
}
PARAMETERS = {"weight": 0, "bias": 1, "running_mean": 2, "running_var": 3}


def batch_norm(o: Made, name: str, size: int, dtype: torch.dtype) -> object:
    """Of halves, with parameters in float but one."""
    given = [o(3) for _ in PARAMETERS]
    given[PARAMETERS[name]] = o(size, dtype)
    return torch.native_batch_norm(o(2, 3, 4, HALF), *given, True, 0.1, 1e-5)


def gru(o: Made, parameters: int) -> object:
    given = [o(12, 4), o(12, 4), o(12), o(12)][:parameters]
    return torch.gru(o(3, 2, 4), o(1, 2, 4), given, True, 1, 0.0, False, False, False)


def attention_gradient(o: Made) -> object:
    x = o(1, 2, 3, 8)
    of = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    return backward(o(1, 2, 3, 8, HALF), x, x, x, *of(x, x, x), 0.0, False)


LOSSES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "mse_loss": F.mse_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss,
    "soft_margin_loss": F.soft_margin_loss,
    "binary_cross_entropy": F.binary_cross_entropy,
}


def bernoulli(x: Tensor) -> Tensor:
    return torch.bernoulli(x[:3], out=x[1:])


REFUSED: dict[str, Call] = {
    **{f"{name}, out= of int": into(op, INT) for name, op in OUT.items()},
    **{f"{name}, out= of bool": into(op, BOOL) for name, op in OUT.items()},
    **{
        f"{name}, indices as floats": lambda o, op=op: op(o(3, 3), o(0))
        for name, op in INDICES.items()
    },
    **{
        f"{name} of integers": lambda o, loss=loss: loss(o(3, LONG), o(3, LONG))
        for name, loss in LOSSES.items()
    },
    "Fourier transform of integers": lambda o: torch.ops.aten._fft_c2c(
        o(4, LONG), [0], 0, True
    ),
    "real Fourier transform of integers": lambda o: torch.ops.aten._fft_r2c(
        o(4, LONG), [0], 0, True
    ),
    "gru, parameters": lambda o: gru(o, 3),
    "attention, gradient of halves": attention_gradient,
    "randperm of bools": lambda o: torch.randperm(1, out=o(1, BOOL)),
    "index_select by floats": lambda o: o(3, 4).index_select(0, o(2)),
    "index_select of a number": lambda o: o().index_select(1, zeros(o(1))),
    "mean, out= with one element": lambda o: torch.mean(
        o(3, 5), -1, out=o(1).expand(3)
    ),
    "index by nothing": lambda o: torch.ops.aten.index(o(2, 3), []),
    "bernoulli into its operand": lambda o: bernoulli(o(4)),
    "bucketize by a number": lambda o: torch.bucketize(o(2), o(DOUBLE)),
    "grid_sample by halves": lambda o: torch.grid_sampler(
        o(1, 1, 2, 2), o(1, 2, 2, 2, HALF), 0, 0, False
    ),
    "embedding_bag by halves": lambda o: F.embedding_bag(
        zeros(o(2, 3)), o(4, 2), per_sample_weights=o(2, 3, HALF), mode="sum"
    ),
    "conv_transpose2d, output_padding of 3": lambda o: F.conv_transpose2d(
        o(1, 2, 4, 4), o(2, 3, 2, 2), stride=2, output_padding=(1, 1, 1)
    ),
    "softshrink, lambda of NaN": lambda o: F.softshrink(o(3), float("nan")),
    "masked_fill by bytes": lambda o: o(3).masked_fill(o(3, BYTE), 2.0),
    "cdist of two types": lambda o: torch.cdist(o(2, 3), o(2, 3, DOUBLE), p=1.0),
    "addbmm of two types": lambda o: torch.addbmm(
        o(2, 2, LONG), o(3, 2, 2), o(3, 2, 2, LONG)
    ),
    "index_select by bytes": lambda o: o(3, 4).index_select(0, o(2, BYTE)),
    "index_fill by floats": lambda o: o(3, 4).index_fill(0, o(2), 1),
    "index_fill by ints": lambda o: o(3, 4).index_fill(0, o(2, INT), 1),
    "put by floats": lambda o: o(3, 4).put(o(2), o(2)),
    "put by ints": lambda o: o(3, 4).put(o(2, INT), o(2)),
    "index_put by floats": lambda o: o(3, 4).index_put((o(2),), o(4)),
    "cross of two types": lambda o: torch.cross(o(2, 3), o(2, 3, DOUBLE), dim=1),
    "nll_loss, weight": lambda o: F.nll_loss(o(2, 3), o(2, LONG), o(3, DOUBLE)),
    "nll_loss2d, target": lambda o: F.nll_loss(o(2, 3, 2, 2), o(2, 2, 2, INT)),
    "multi_margin_loss, target": lambda o: F.multi_margin_loss(o(2, 3), o(2, INT)),
    "multi_margin_loss, weight": lambda o: F.multi_margin_loss(
        o(2, 3), o(2, LONG), weight=o(3, DOUBLE)
    ),
    "multi_margin_loss, weight of half": lambda o: F.multi_margin_loss(
        o(2, 3), o(2, LONG), weight=o(3, HALF)
    ),
    "layer_norm": lambda o: F.layer_norm(o(2, 3, HALF), (3,), o(3, HALF), o(3)),
    "group_norm": lambda o: F.group_norm(o(2, 4, HALF), 2, o(4), o(4, HALF)),
    **{
        f"batch_norm, {name}": lambda o, name=name: batch_norm(o, name, 3, HALF)
        for name in PARAMETERS
    },
    "addmv, complex alpha": lambda o: torch.addmv(o(3), o(3, 3), o(3), alpha=1 + 0.5j),
    "addmv, large beta": lambda o: torch.addmv(o(3), o(3, 3), o(3), beta=1e300),
    "addr, large alpha": lambda o: torch.addr(o(3, 3), o(3), o(3), alpha=1e300),
    "pow of halves": lambda o: o(3, HALF) ** 1e6,
    "max_pool3d, stride": lambda o: F.max_pool3d(o(1, 4, 4, 4), 3, stride=2**40),
    "rrelu, upper": lambda o: F.rrelu(o(5), 0.0, 1e300, training=True),
    "rrelu, lower": lambda o: F.rrelu(o(5), -1e300, 0.0, training=True),
    "rrelu_, overlap": lambda o: F.rrelu_(o(1).expand(20), training=True),
    "quantile": lambda o: torch.quantile(o(5), -o(2)),
    "nanquantile": lambda o: torch.nanquantile(o(5), -o(2)),
    "nanquantile of one": lambda o: torch.nanquantile(o(), 2 * o(2)),
}


def refusal(call: Call, device: torch.device | str) -> tuple[type, str]:
    def ones(*sizes: Any) -> Tensor:
        dtype = sizes[-1] if sizes and isinstance(sizes[-1], torch.dtype) else None
        shape = sizes[:-1] if dtype else sizes
        return torch.ones(shape, dtype=dtype).to(device)

    def finished() -> None:
        call(ones)
        torch.xpu.synchronize()

    with pytest.raises((RuntimeError, IndexError)) as found:
        finished()
    return type(found.value), str(found.value).splitlines()[0]


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_cpu_refuses_is_refused(name: str, xpu: torch.device) -> None:
    with xpurt.kernel_policy("sycl"):
        found = refusal(REFUSED[name], xpu)
    expected = refusal(REFUSED[name], "cpu")
    assert found[0] is expected[0]
    assert found[1].startswith(expected[1])


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("policy", ["auto", "sycl"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_wrong_lengths(name: str, policy: str, xpu: torch.device) -> None:
    """The CPU's kernel reads them out of bounds."""

    def made(size: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.ones(size, dtype=dtype, device=xpu)

    given = [made(3) for _ in PARAMETERS]
    wrong = f"{name} should contain 3 elements not 2"
    given[PARAMETERS[name]] = made(2)
    x = torch.ones(2, 3, 4, device=xpu)
    for training in (True, False):
        with xpurt.kernel_policy(policy), pytest.raises(RuntimeError, match=wrong):
            torch.native_batch_norm(x, *given, training, 0.1, 1e-5)
        with xpurt.kernel_policy(policy), pytest.raises(RuntimeError, match=wrong):
            torch._native_batch_norm_legit(x, *given, training, 0.1, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex32], ids=str)
def test_halves_are_transformed_along_powers_of_two(
    dtype: torch.dtype, xpu: torch.device
) -> None:
    """As on CUDA. CPU tensors are not transformed in this type at all."""
    x = torch.arange(96.0).view(6, 16).to(dtype).to(xpu)
    found = torch.fft.fft(x).to(torch.complex64).cpu()
    exact = torch.fft.fft(x.cpu().to(torch.complex64))
    torch.testing.assert_close(found, exact, rtol=2e-3, atol=2e-1)
    for call in (
        lambda: torch.fft.fft(x, dim=0),
        lambda: torch.fft.fft2(x),
        lambda: torch.fft.fft(x, n=12),
        lambda: torch.fft.hfft(x, n=12),
    ):
        with pytest.raises(RuntimeError, match="sizes are powers of two when comp"):
            call()


def test_a_transform_into_halves(xpu: torch.device) -> None:
    """Of floats, so its length need not be a power of two."""
    x = torch.arange(10.0).to(torch.complex64)
    out = torch.empty(10, dtype=torch.float16)
    expected = torch.fft.irfft(x, 10, out=out)
    found = torch.fft.irfft(x.to(xpu), 10, out=out.to(xpu)).cpu()
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=1e-3)


def test_a_factor_of_integers_is_rounded_first(xpu: torch.device) -> None:
    x, index = torch.ones(3, dtype=torch.int64), torch.tensor([0, 1, 1])
    source = torch.tensor([3, -3, 5])
    expected = x.index_add(0, index, source, alpha=1.5)
    with xpurt.kernel_policy("sycl"):
        found = x.to(xpu).index_add(0, index.to(xpu), source.to(xpu), alpha=1.5)
    assert torch.equal(found.cpu(), expected)


def test_a_loss_beside_bools(xpu: torch.device) -> None:
    x, target = torch.tensor([0.5, 3.0, -1.0]), torch.tensor([True, False, True])

    def gradient(device: torch.device | str) -> Tensor:
        given = x.to(device).requires_grad_()
        F.smooth_l1_loss(given, target.to(device)).backward()
        assert given.grad is not None
        return given.grad.cpu()

    with xpurt.kernel_policy("sycl"):
        torch.testing.assert_close(gradient(xpu), gradient("cpu"))


def test_frequencies_go_to_their_places(xpu: torch.device) -> None:
    """PyTorch's own function writes to a result with gaps as if it had none."""
    whole = torch.full((12,), -9.0, device=xpu)
    torch.fft.fftfreq(5, out=whole[:10:2])
    assert torch.equal(whole[:10:2].cpu(), torch.fft.fftfreq(5))
    assert torch.equal(whole[1::2].cpu(), torch.full((6,), -9.0))
    out = torch.empty(0, device=xpu)
    assert torch.equal(
        torch.fft.fftfreq(4, 0.5, out=out).cpu(), torch.fft.fftfreq(4, 0.5)
    )
    assert torch.fft.fftfreq(4, device=xpu).tolist() == [0, 0.25, -0.5, -0.25]


@pytest.mark.parametrize("other", [torch.float32, torch.float64], ids=str)
def test_nextafter_in_a_wider_type(other: torch.dtype, xpu: torch.device) -> None:
    x, y = torch.ones((), dtype=torch.float16), torch.full((), 2.0, dtype=other)
    with xpurt.kernel_policy("sycl"):
        found = x.to(xpu).nextafter_(y.to(xpu))
    assert found.item() == x.nextafter_(y).item() == 1


@pytest.mark.mappings("CPU", "GPU")
def test_strides_of_empty_results(xpu: torch.device) -> None:
    def strides(device: torch.device | str) -> list[tuple[int, ...]]:
        x = torch.empty(0, 2, 3, device=device).transpose(1, 2)
        tensor = torch.ones((), device=device)
        results = (x + 1, 2 * x, x.exp(), x > 1, x + tensor, torch.where(x > 1, 2.0, x))
        numbers = (x**2, x.clamp(1), torch.lerp(x, x, 0.5), F.leaky_relu(x))
        return [each.stride() for each in (*results, *numbers)]

    with xpurt.kernel_policy("sycl"):
        assert strides(xpu) == strides("cpu")


@pytest.mark.parametrize("pivot", [0, 4])
def test_a_pivot_beyond_the_rows(pivot: int, xpu: torch.device) -> None:
    pivots = torch.tensor([1, 2, pivot], dtype=torch.int32, device=xpu)
    unit = torch.eye(3, device=xpu)
    with xpurt.kernel_policy("sycl"):
        for call in (
            lambda: torch.linalg.lu_solve(unit, pivots, unit[:, :2]),
            lambda: torch.lu_unpack(unit, pivots)[0],
        ):
            with pytest.raises(RuntimeError, match=r"ivots .*must .*(1|LU)"):
                call().cpu()


@pytest.mark.parametrize("decimals", [2, 40, 2**31, -(2**62)])
def test_rounding_to_any_number_of_decimals(decimals: int, xpu: torch.device) -> None:
    x = torch.tensor([1.234, -5.678])
    with xpurt.kernel_policy("sycl"):
        found = torch.round(x.to(xpu), decimals=decimals).cpu()
    expected = torch.round(x, decimals=decimals)
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_a_factorial_beyond_float64(xpu: torch.device) -> None:
    x = torch.tensor([0.3, 1.5, 20.0])
    with xpurt.kernel_policy("sycl"):
        found = torch.polygamma(171, x.to(xpu)).cpu()
        assert torch.polygamma(2**40, x.to(xpu)).shape == x.shape  # ends
    torch.testing.assert_close(found, torch.polygamma(171, x), equal_nan=True)


@pytest.mark.mappings("CPU", "GPU")
def test_a_stride_beyond_the_image(xpu: torch.device) -> None:
    x, weight = torch.rand(1, 3, 4, 4), torch.rand(3, 3, 3, 3)
    for options in ({"stride": (2**62, 2), "padding": 2}, {"stride": 2**62}):
        with xpurt.kernel_policy("sycl"):
            found = F.conv2d(x.to(xpu), weight.to(xpu), **options)
        torch.testing.assert_close(found.cpu(), F.conv2d(x, weight, **options))
