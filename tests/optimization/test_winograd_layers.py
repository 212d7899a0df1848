"""Convolutions of 3x3 by Winograd's algorithm: the values of direct ones in float64, and
which calls they are for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from ops_that_run import Ops
from own_process import run
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.functional import winograd
from xpurt.functional.activations import NONE, Activation
from xpurt.functional.convolutions import BatchNorm, Geometry
from xpurt.functional.winograd import BLOCKS, PANEL, pack_winograd_weight
from xpurt.optimization import fused_convolution
from xpurt.optimization.packed_weights import forget_packs

RELU = Activation("relu")
TOLERANCE = 2e-5  # of results of standard deviation 1
LAST = torch.channels_last

pytestmark = pytest.mark.skipif(
    not BLOCKS,
    reason="the algorithm wants AVX2 or AVX-512",
)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def one_thread(threads: None) -> None:
    torch.set_num_threads(1)


def layer_of(into: int = 32, out: int = 32, **given: Any) -> nn.Conv2d:
    layer = nn.Conv2d(into, out, 3, **({"padding": 1} | given))
    nn.init.normal_(layer.weight, 0, (layer.in_channels * 9) ** -0.5)
    return layer.eval()


def images(*sizes: int) -> Tensor:
    return torch.randn(sizes).to(memory_format=LAST)


def values(layer: nn.Conv2d, x: Tensor, *rest: Any) -> Tensor:
    geometry = Geometry(layer.stride, layer.padding, layer.dilation, layer.groups)
    operands = x, layer.weight, layer.bias, geometry
    with torch.no_grad():
        return fused_convolution.convolution(*operands, *rest)


def used(layer: nn.Conv2d, x: Tensor, *rest: Any) -> bool:
    with Ops() as ops:
        values(layer, x, *rest)
    return "winograd_conv2d" in ops.names


def exact(layer: nn.Conv2d, x: Tensor) -> Tensor:
    weight, bias = layer.weight.detach().cpu().double(), layer.bias
    y = F.conv2d(x.cpu().double(), weight, None, 1, layer.padding)
    return y if bias is None else y + bias.detach().cpu().double()[:, None, None]


@pytest.mark.parametrize(
    ("sizes", "out", "padding"),
    [
        ((8, 16, 16, 16), 32, 1),
        ((16, 48, 9, 7), 96, 1),
        ((8, 16, 33, 6), 64, 1),
        ((2, 64, 20, 40), 32, 0),
        ((2, 16, 14, 30), 32, 2),
        ((1, 32, 27, 12), 32, (1, 0)),
        ((3, 16, 7, 13), 32, (0, 2)),
        ((8, 16, 4, 4), 32, 1),
    ],
    ids=str,
)
def test_values(
    device: str, one_thread: None, sizes: Any, out: int, padding: Any
) -> None:
    layer, x = layer_of(sizes[1], out, padding=padding).to(device), images(*sizes)
    assert used(layer, x.to(device))
    found = values(layer, x.to(device))
    assert found.is_contiguous(memory_format=LAST)
    assert_close(found.cpu().double(), exact(layer, x), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("activation", [NONE, RELU, Activation("silu")])
@pytest.mark.parametrize("bias", [False, True])
def test_what_follows(
    device: str, one_thread: None, activation: Activation, bias: bool
) -> None:
    layer, norm = layer_of(bias=bias), nn.BatchNorm2d(32).eval()
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    nn.init.normal_(norm.bias)
    x, other = images(2, 32, 16, 16), torch.randn(2, 32, 16, 16)
    y = exact(layer, x)
    normal = F.batch_norm(
        y, norm.running_mean.double(), norm.running_var.double(), None,
        norm.bias.detach().double(), eps=norm.eps,
    )  # fmt: skip
    layer, norm = layer.to(device), norm.to(device)
    statistics = norm.running_mean, norm.running_var, norm.weight, norm.bias
    rest = BatchNorm(*statistics, norm.eps), other.to(device), activation
    assert used(layer, x.to(device), *rest)
    found = values(layer, x.to(device), *rest).cpu().double()
    assert_close(found, activation(normal + other), rtol=0, atol=2 * TOLERANCE)


def test_results_do_not_depend_on_the_threads(threads: None) -> None:
    """One part of the tiles, and several; more threads than parts, and fewer."""
    for sizes in (2, 32, 16, 16), (4, 64, 56, 56):
        layer, x = layer_of(sizes[1], 32), images(*sizes)
        weight = pack_winograd_weight(layer.weight.detach())
        found = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            op = torch.ops.xpurt.winograd_conv2d
            found.append(op(x, weight, layer.bias.detach(), None, [1, 1], False))
        assert_close(found[0].double(), exact(layer, x), rtol=0, atol=TOLERANCE)
        assert_close(found[1:], found[:1] * 2, rtol=0, atol=0)


def test_relu_keeps_nan(one_thread: None) -> None:
    x = images(1, 32, 32, 32)
    x[0, 0, 5, 5] = torch.nan
    found = values(layer_of(), x, None, None, RELU)
    assert bool(found[0, :, 4:7, 4:7].isnan().all())
    assert not bool(found[0, :, 12:].isnan().any())


def test_a_new_weight_is_seen(device: str, one_thread: None) -> None:
    layer, x = layer_of().to(device), images(2, 32, 16, 16)
    values(layer, x.to(device))
    with torch.no_grad():
        layer.weight.mul_(-2)
    found = values(layer, x.to(device)).cpu().double()
    assert_close(found, exact(layer, x), rtol=0, atol=3 * TOLERANCE)


def test_a_weight_is_transformed_once(
    one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def pack(weight: Tensor) -> Tensor:
        made.append(weight)
        return pack_winograd_weight(weight)

    monkeypatch.setattr(fused_convolution, "pack_winograd_weight", pack)
    layer = layer_of()
    for sizes in (2, 32, 16, 16), (4, 32, 12, 12), (2, 32, 16, 16):
        values(layer, images(*sizes))
    assert len(made) == 1
    forget_packs(layer)
    values(layer, images(2, 32, 16, 16))
    assert len(made) == 2


def test_a_model(device: str, one_thread: None, in_optimized_form: None) -> None:
    model = nn.Sequential(layer_of(), nn.BatchNorm2d(32), nn.ReLU(), layer_of())
    model = model.eval().to(device)
    x = images(4, 32, 16, 16).to(device)
    made = xpurt.optimize(model, sample_input=x)
    with torch.no_grad():
        xpurt.op_report(reset=True)
        assert_close(made(x), model(x), rtol=1e-4, atol=2 * TOLERANCE)
    if device == "xpu":
        tiers = {row.op: row.tier for row in xpurt.op_report().rows}
        assert tiers["xpurt::winograd_conv2d"] == "native"


OTHERS: dict[str, Callable[[], tuple[nn.Conv2d, Tensor]]] = {
    "stride": lambda: (layer_of(stride=2), images(4, 32, 32, 32)),
    "dilation": lambda: (layer_of(dilation=2, padding=2), images(4, 32, 32, 32)),
    "groups": lambda: (layer_of(groups=2), images(4, 32, 32, 32)),
    "bfloat16": lambda: (layer_of().bfloat16(), images(4, 32, 32, 32).bfloat16()),
    "input channels": lambda: (layer_of(into=24), images(4, 24, 32, 32)),
    "output channels": lambda: (layer_of(out=48), images(4, 32, 32, 32)),
    "5x5": lambda: (layer_of(), images(64, 32, 5, 5)),
    "few tiles": lambda: (layer_of(), images(1, 32, 8, 8)),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_convolutions_are_direct(
    device: str, one_thread: None, case: str
) -> None:
    layer, x = OTHERS[case]()
    assert not used(layer.to(device), x.to(device))


def test_another_kernel_size_is_direct(one_thread: None) -> None:
    layer = nn.Conv2d(32, 32, (1, 3), padding=(0, 1))
    assert not used(layer, images(4, 32, 32, 32))


def test_contiguous_images_of_the_cpu_are_direct(one_thread: None) -> None:
    assert not used(layer_of(), torch.randn(4, 32, 32, 32))


def test_each_thread_needs_tiles(threads: None) -> None:
    layer, x = layer_of(), images(1, 32, 16, 16)  # 16 tiles
    torch.set_num_threads(2)
    assert used(layer, x)
    torch.set_num_threads(3)
    assert not used(layer, x)


def test_direct_convolutions_if_asked(one_thread: None) -> None:
    conv: Any = torch.backends.mkldnn.conv  # type: ignore[attr-defined]
    before = conv.fp32_precision
    conv.fp32_precision = "ieee"
    try:
        assert not used(layer_of(), images(4, 32, 32, 32))
    finally:
        conv.fp32_precision = before


def test_another_processor(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "BLOCKS", ())
    assert not used(layer_of(), images(4, 32, 32, 32))


def test_the_policy_for_kernels_on_the_queue(
    cpu: torch.device, one_thread: None
) -> None:
    layer, x = layer_of().to(cpu), images(4, 32, 32, 32).to(cpu)
    assert used(layer, x)
    with xpurt.kernel_policy("sycl"):
        assert not used(layer, x)


WEIGHT = torch.zeros(36, 32 // PANEL, 16, PANEL)
REFUSED: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "type": (
        (images(1, 16, 8, 8).double(), WEIGHT, None, None, [1, 1], False),
        TypeError, "images in float32; found Double",
    ),
    "dimensions": (
        (torch.zeros(16, 8, 8), WEIGHT, None, None, [1, 1], False),
        ValueError, "4 dimensions, or of 5 of which the last is a block of 16",
    ),
    "format": (
        (images(1, 16, 8, 8), torch.zeros(36, 32 // PANEL, PANEL, 16).mT, None, None, [1, 1], False),
        ValueError, "a weight that is contiguous",
    ),
    "weight": (
        (images(1, 32, 8, 8), WEIGHT, None, None, [1, 1], False),
        ValueError, rf"transformed weight of shape \(36, out_channels / {PANEL}, 32, {PANEL}\)",
    ),
    "channels": (
        (images(1, 8, 8, 8), torch.zeros(36, 32 // PANEL, 8, PANEL), None, None, [1, 1], False),
        ValueError, "a multiple of 16 input channels; found 8",
    ),
    "padding": (
        (images(1, 16, 8, 8), WEIGHT, None, None, [1], False),
        ValueError, "padding of two numbers",
    ),
    "small": (
        (images(1, 16, 2, 8), WEIGHT, None, None, [0, 0], False),
        ValueError, "images of 3x3 or more",
    ),
    "bias": (
        (images(1, 16, 8, 8), WEIGHT, torch.zeros(16), None, [1, 1], False),
        ValueError, r"bias of shape \(32\); found \[16\]",
    ),
    "other": (
        (images(1, 16, 8, 8), WEIGHT, None, images(1, 32, 8, 1), [1, 1], False),
        ValueError, r"shape of the result, \[1, 32, 8, 8\]; found \[1, 32, 8, 1\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    args, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        torch.ops.xpurt.winograd_conv2d(*args)


@pytest.mark.parametrize("block", BLOCKS)
def test_images_in_blocks(one_thread: None, block: int) -> None:
    """The values of images in channels_last, whatever the strides."""
    x, other, bias = images(3, 32, 17, 9), images(3, 64, 17, 9), torch.randn(64)
    weight = pack_winograd_weight(layer_of(32, 64).weight.detach())

    def in_blocks(x: Tensor) -> Tensor:
        return x.unflatten(1, (-1, block)).permute(0, 1, 3, 4, 2)

    op = torch.ops.xpurt.winograd_conv2d
    expected = op(x, weight, bias, other, [1, 1], True)
    for made in (in_blocks(x), in_blocks(x).contiguous()):
        found = op(made, weight, bias, in_blocks(other), [1, 1], True)
        assert found.is_contiguous()
        assert_close(found, in_blocks(expected), rtol=0, atol=0)
    found = op(x.contiguous(), weight, bias, other.contiguous(), [1, 1], True)
    assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="AVX2 runs above"
)
def test_values_with_avx2() -> None:
    run(
        """
        import torch, xpurt
        from torch.nn import functional as F
        from xpurt.functional.winograd import BLOCKS, PANEL, pack_winograd_weight

        torch.ones(1, device="xpu")
        assert BLOCKS == (8, 16)
        x, weight, bias = (torch.randn(*s) for s in ((2, 48, 9, 14), (64, 48, 3, 3), (64,)))
        weight /= (48 * 9) ** 0.5
        exact = F.conv2d(x.double(), weight.double(), bias.double(), padding=1).relu()
        op, packed = torch.ops.xpurt.winograd_conv2d, pack_winograd_weight(weight)
        found = op(x, packed, bias, None, [1, 1], True)
        assert (found - exact).abs().max() < 2e-5
        blocks = x.unflatten(1, (-1, 8)).permute(0, 1, 3, 4, 2)
        made = op(blocks, packed, bias, None, [1, 1], True)
        assert made.permute(0, 1, 4, 2, 3).flatten(1, 2).equal(found)
        """,
        fresh=True,
        ATEN_CPU_CAPABILITY="avx2",
    ).check_returncode()


def test_no_images() -> None:
    op = torch.ops.xpurt.winograd_conv2d
    found = op(images(0, 16, 8, 8), WEIGHT, None, None, [1, 1], False)
    assert found.shape == (0, 32, 8, 8)
