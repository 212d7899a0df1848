"""The quantized layers against their definition in float64."""

import pytest
import torch
from own_process import run
from torch import Tensor, nn

import xpurt
from xpurt.optimization.comparison import difference_of
from xpurt.quantization.in_plain_ops import in_plain_ops
from xpurt.quantization.layers import Int4WeightLinear, Int8Convolution, Int8Linear


def rows_as_integers(x: Tensor) -> Tensor:
    """Each row in 8 bits, as float64."""
    scale = x.abs().amax(-1, keepdim=True).double() / 127
    return (x.double() / scale).round() * scale


def int8_weight(layer: nn.Module) -> Tensor:
    values, scale = layer.quantized_weight, layer.weight_scale
    assert isinstance(values, Tensor)
    assert isinstance(scale, Tensor)
    return (values.cpu().double().flatten(1) * scale.cpu().double()[:, None]).view(
        values.shape
    )


def assert_close(found: Tensor, wanted: Tensor, tolerance: float = 2e-6) -> None:
    error = (found.cpu().double() - wanted).abs().max()
    assert error <= tolerance * wanted.abs().max()


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("bias", [True, False])
def test_a_dynamic_linear_layer(device: str, rows: int, bias: bool) -> None:
    layer = nn.Linear(96, 40, bias=bias).eval()
    quantized = xpurt.quantize(layer.to(device), "dynamic")
    x = torch.randn(2, rows, 96)
    wanted = rows_as_integers(x) @ int8_weight(quantized).T
    if bias:
        wanted += layer.bias.detach().cpu().double()
    # A value half between two integers may be rounded to either.
    assert_close(quantized(x.to(device)), wanted, 1e-3)


@pytest.mark.parametrize("rows", [1, 4, 5, 33])
@pytest.mark.parametrize("outputs", [1, 50, 700])
def test_int8_weights(device: str, rows: int, outputs: int) -> None:
    layer = nn.Linear(601, outputs).eval().to(device)
    with torch.no_grad():
        layer.weight[-1] = 0
    quantized = xpurt.quantize(layer, "int8_weight_only")
    assert quantized.weight_scale.min() > 0
    x = torch.randn(rows, 601)
    wanted = x.double() @ int8_weight(quantized).T + layer.bias.detach().cpu().double()
    assert_close(quantized(x.to(device)), wanted)


@pytest.mark.parametrize("rows", [1, 4, 5, 33])
@pytest.mark.parametrize("group_size", [16, 32, 64, 96])
def test_int4_weights(device: str, rows: int, group_size: int) -> None:
    layer = nn.Linear(192, 50).eval().to(device)
    quantized = xpurt.quantize(layer, "int4_weight_only", group_size=group_size)
    assert isinstance(quantized, nn.Module)
    assert isinstance(quantized, Int4WeightLinear)
    bytes_ = quantized.quantized_weight.cpu().view(50, -1, group_size // 2)
    values = torch.cat([bytes_ & 15, bytes_ >> 4], 2).double()
    scale = quantized.weight_scale.cpu().double()[:, :, None]
    weight = (values * scale + quantized.weight_minimum.cpu()[:, :, None]).flatten(1)
    step = scale.max()
    assert (weight - layer.weight.detach().cpu()).abs().max() <= 0.501 * step
    x = torch.randn(rows, 192)
    wanted = x.double() @ weight.T + layer.bias.detach().cpu().double()
    assert_close(quantized(x.to(device)), wanted)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("group_size", [16, 32, 64])
def test_int4_weights_and_positive_inputs(
    device: str, rows: int, group_size: int
) -> None:
    """Sums of the inputs, which are large, cancel."""
    layer = nn.Linear(1536, 200).eval().to(device)
    quantized = xpurt.quantize(layer, "int4_weight_only", group_size=group_size)
    plain = in_plain_ops(quantized)
    x = torch.rand(rows, 1536, device=device) + 1
    expected, found = plain(x), quantized(x)
    wanted = plain.double().cpu()(x.cpu().double())
    assert difference_of(expected, found, wanted.to(device)) is None


CONVOLUTIONS = {
    "1d": (lambda: nn.Conv1d(6, 8, 3, 2, 1), (2, 6, 17)),
    "2d": (lambda: nn.Conv2d(6, 8, 3, padding=1), (2, 6, 9, 8)),
    "depthwise": (lambda: nn.Conv2d(6, 6, 3, groups=6), (2, 6, 9, 8)),
    "dilated": (lambda: nn.Conv2d(6, 8, (3, 2), dilation=2), (2, 6, 9, 8)),
    "same": (lambda: nn.Conv2d(6, 8, 3, padding="same"), (2, 6, 9, 8)),
    "without bias": (lambda: nn.Conv2d(6, 8, 1, 2, bias=False), (2, 6, 9, 8)),
    "3d": (lambda: nn.Conv3d(4, 8, 2), (2, 4, 5, 6, 4)),
    "single": (lambda: nn.Conv2d(6, 8, 3, padding=1), (6, 9, 8)),
}


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution(device: str, name: str, kind: str) -> None:
    make, shape = CONVOLUTIONS[name]
    layer = make().eval().to(device)
    x = torch.randn(shape)
    given = x.to(device)
    quantized = xpurt.quantize(layer, kind, calibration=[given])
    assert type(quantized) is Int8Convolution
    low, high = x.min().clamp(max=0).double(), x.max().clamp(min=0).double()
    scale = (high - low) / 255
    zero = (-low / scale).round()
    integers = ((x.double() / scale).round() + zero).clamp(0, 255) - zero
    reference = make().double().eval()
    with torch.no_grad():
        reference.weight.copy_(int8_weight(quantized))
        if layer.bias is not None:
            reference.bias.copy_(layer.bias)
        wanted = reference(integers * scale)
    found = quantized(given)
    assert found.shape == wanted.shape
    assert_close(found, wanted, 4e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["dynamic", "int8_weight_only", "int4_weight_only"])
def test_the_result_has_the_type_of_the_input(
    device: str, dtype: torch.dtype, kind: str
) -> None:
    layer = nn.Linear(64, 32).eval().to(device)
    quantized = xpurt.quantize(layer, kind)
    x = torch.randn(5, 64, device=device)
    found = quantized(x.to(dtype))
    assert found.dtype == dtype
    assert_close(found, quantized(x).cpu().double(), 0.05)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_spoils_its_own_row(device: str, bad: float) -> None:
    quantized = xpurt.quantize(nn.Linear(32, 8).eval().to(device), "dynamic")
    x = torch.randn(3, 32)
    x[1, 5] = bad
    finite = quantized(x.to(device)).isfinite().cpu()
    assert finite[0].all()
    assert not finite[1].any()
    assert finite[2].all()


@pytest.mark.parametrize("kind", ["dynamic", "int8_weight_only", "int4_weight_only"])
def test_no_rows_and_rows_of_zeros(device: str, kind: str) -> None:
    layer = nn.Linear(64, 32).eval().to(device)
    quantized = xpurt.quantize(layer, kind)
    assert quantized(torch.zeros(0, 64, device=device)).shape == (0, 32)
    zeros = quantized(torch.zeros(2, 64, device=device))
    torch.testing.assert_close(zeros, layer.bias.detach().expand(2, 32))


@pytest.mark.parametrize("kind", ["dynamic", "int8_weight_only", "int4_weight_only"])
def test_activations_of_a_wrong_shape_or_type(device: str, kind: str) -> None:
    quantized = xpurt.quantize(nn.Linear(64, 32).eval().to(device), kind)
    with pytest.raises(ValueError, match="wants 64 input channels"):
        quantized(torch.zeros(2, 60, device=device))
    with pytest.raises(TypeError, match="floating point"):
        quantized(torch.zeros(2, 64, dtype=torch.int64, device=device))


@pytest.mark.parametrize("scales", [(32,), (32, 3), (32, 8)])
def test_groups_of_a_wrong_size(device: str, scales: tuple[int, ...]) -> None:
    values = torch.zeros(32, 32, dtype=torch.uint8, device=device)
    scale, x = torch.ones(scales, device=device), torch.ones(1, 64, device=device)
    with pytest.raises(ValueError, match="groups of a multiple of 16 inputs"):
        torch.ops.xpurt.int4_weight_linear(x, values, scale, scale, None)


@pytest.mark.parametrize(
    "other", [torch.zeros(1, 8, 5, 5), torch.zeros(2, 8, 5, 5, dtype=torch.float64)]
)
def test_what_is_added_has_another_shape_or_type(device: str, other: Tensor) -> None:
    x, weight = torch.zeros(2, 6, 7, 7), torch.zeros(8, 6, 3, 3, dtype=torch.int8)
    tensors = [each.to(device) for each in (x, weight, torch.ones(8), other)]
    shape = (1, 1), (0, 0), (1, 1), 1, True, tensors.pop()
    with pytest.raises(
        ValueError, match="adds a tensor of its result's shape and type"
    ):
        torch.ops.xpurt.int8_convolution(*tensors, None, None, None, *shape)


def test_weights_that_were_written_are_packed_again(device: str) -> None:
    one, other = (
        xpurt.quantize(nn.Linear(32, 16).eval().to(device), "dynamic") for _ in range(2)
    )
    assert isinstance(one, Int8Linear)
    x = torch.randn(4, 32, device=device)
    assert not torch.equal(one(x), other(x))
    one.load_state_dict(other.state_dict())
    assert torch.equal(one(x), other(x))


def test_without_instructions_for_int8() -> None:
    """The sums are exact integers, of the largest products, too, in each layout."""
    run(
        """
        import torch, xpurt
        from torch.nn import functional as F

        torch.ones(1, device="xpu")
        zero, one = torch.tensor([128]), torch.ones(1)
        for rows, columns, channels in ((1, 7, 5), (13, 64, 16), (100, 601, 33)):
            x = torch.randint(-128, 128, (rows, columns)).float()
            x[0] = 127
            weight = torch.randint(-128, 128, (channels, columns), dtype=torch.int8)
            weight[0] = -128
            scale, bias = torch.ones(channels), torch.arange(channels).float()
            found = torch.ops.xpurt.int8_linear(x, weight, scale, bias, one, zero)
            assert found.double().equal(F.linear(x.double(), weight.double(), bias.double()))
            found = torch.ops.xpurt.int8_linear(x, weight, scale, bias)
            largest = x.abs().amax(1, True) / 127
            wanted = (x * largest.reciprocal()).round().double() @ weight.double().T
            wanted = wanted * largest + bias
            assert (found - wanted).abs().max() < 2e-6 * wanted.abs().max()
        shapes = (
            ((2, 3, 9, 11), (5, 3, 3, 3), (2, 1), (1, 2), (1, 1)),
            ((1, 16, 7, 7), (32, 16, 3, 3), (1, 1), (2, 2), (2, 2)),
            ((2, 3, 9, 11), (5, 3, 2, 3), (1, 1), (0, 1), (1, 2)),
            ((3, 8, 5, 1), (17, 8, 1, 1), (1, 1), (0, 0), (1, 1)),
            ((3, 7, 5, 6), (17, 7, 1, 1), (2, 3), (0, 0), (1, 1)),
        )
        for sizes, kernel, *shape in shapes:
            x = torch.randint(-100, 156, sizes).float()
            weight = torch.randint(-128, 128, kernel, dtype=torch.int8)
            scale, bias = torch.ones(kernel[0]), torch.arange(kernel[0]).float()
            wanted = F.conv2d(x.double(), weight.double(), bias.double(), *shape)
            other = torch.randint(-9999, 9999, wanted.shape).float()
            for added in (None, other, other.contiguous(memory_format=torch.channels_last)):
                found = torch.ops.xpurt.int8_convolution(
                    x, weight, scale, bias, one, torch.tensor([100]), *shape, 1, True, added
                )
                sums = wanted if added is None else wanted + added
                assert found.double().equal(sums.relu())
                assert found.is_contiguous(memory_format=torch.channels_last)
        x = torch.full((1, 4, 3, 3), torch.nan)
        weight, scale = torch.ones(2, 4, 1, 1, dtype=torch.int8), torch.ones(2)
        none = (None, None, None, (1, 1), (0, 0), (1, 1), 1, True)
        assert torch.ops.xpurt.int8_convolution(x, weight, scale, *none).isnan().all()
        """,
        fresh=True,
        ONEDNN_MAX_CPU_ISA="AVX2",
    ).check_returncode()
