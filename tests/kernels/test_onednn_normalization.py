"""Normalization of batches and layers: by oneDNN on a CPU, where it computes as PyTorch
does, and by steps elsewhere."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from kernels.kernel_forced import check_on_queue, tiers_of
from kernels.kernel_tolerance import assert_near
from xpurt import _C, kernel_policy, prefer

BATCH = "aten::native_batch_norm"
LAYER = "aten::native_layer_norm"


@dataclass(frozen=True)
class Batch:
    sizes: tuple[int, ...]
    last: bool = False  # channels
    weight: bool = True
    bias: bool = True
    running: bool = True
    training: bool = True
    momentum: float = 0.1
    eps: float = 1e-5

    def operands(self, dtype: torch.dtype) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(len(self.sizes))
        channels = self.sizes[1]
        x = torch.randn(self.sizes, generator=generator)
        x = x * 3 + torch.arange(channels).reshape(-1, *[1] * (len(self.sizes) - 2))
        if self.last:
            formats = {4: torch.channels_last, 5: torch.channels_last_3d}
            x = x.contiguous(memory_format=formats[len(self.sizes)])
        made = {"input": x.to(dtype)}
        if self.weight:
            made["weight"] = torch.rand(channels, generator=generator).to(dtype)
        if self.bias:
            made["bias"] = torch.rand(channels, generator=generator).to(dtype)
        if self.running:
            made["running_mean"] = torch.rand(channels, generator=generator).to(dtype)
            made["running_var"] = torch.rand(channels, generator=generator).to(dtype)
        return made

    def __call__(self, given: dict[str, Tensor]) -> list[Tensor]:
        """The result, the running statistics, and the gradients."""
        leaves = {k: v.detach().clone() for k, v in given.items()}
        wanted = [leaves[k] for k in ("input", "weight", "bias") if k in leaves]
        for leaf in wanted:
            leaf.requires_grad_()
        result = F.batch_norm(
            **{"running_mean": None, "running_var": None, **leaves},
            training=self.training,
            momentum=self.momentum,
            eps=self.eps,
        )
        weights = torch.linspace(-1, 2, result.numel()).reshape(result.shape)
        grads = torch.autograd.grad(result, wanted, weights.to(result))
        running = [leaves[k] for k in leaves if k.startswith("running")]
        return [result.detach(), *running, *grads]


BATCHES = [
    Batch((8, 6)),
    Batch((4, 6, 11)),
    Batch((3, 5, 7, 9)),
    Batch((3, 16, 7, 9), last=True),
    Batch((3, 5, 7, 9), last=True, momentum=0.3),
    Batch((2, 8, 3, 4, 5)),
    Batch((2, 8, 3, 4, 5), last=True),
    Batch((3, 5, 7, 9), weight=False, bias=False),
    Batch((3, 5, 7, 9), weight=False),
    Batch((3, 5, 7, 9), bias=False),
    Batch((3, 5, 7, 9), running=False, eps=1e-3),
    Batch((3, 5, 7, 9), training=False),
    Batch((3, 16, 7, 9), training=False, last=True),
    Batch((3, 5, 7, 9), training=False, weight=False, bias=False),
    Batch((40, 1, 4, 4)),
    Batch((40, 7, 1, 1)),
]


def both(call: Batch, given: dict[str, Tensor], xpu: torch.device) -> list[Tensor]:
    """The result of a call on xpu, compared with the CPU's."""
    expected = call(given)
    _C.reset_op_report()
    with kernel_policy("sycl"):
        actual = call({k: v.to(xpu) for k, v in given.items()})
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs, 20)
    return actual


@pytest.mark.each_value
@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str
)
@pytest.mark.parametrize("call", BATCHES, ids=str)
def test_batches(call: Batch, dtype: torch.dtype, xpu: torch.device) -> None:
    both(call, call.operands(dtype), xpu)
    check_on_queue(BATCH, f"{BATCH}_backward")


@pytest.mark.mappings("CPU", "AUTO")
@pytest.mark.parametrize("call", BATCHES, ids=str)
def test_onednn_takes_batches_on_a_cpu(call: Batch, xpu: torch.device) -> None:
    with prefer("CPU"):
        both(call, call.operands(torch.float32), xpu)
    assert tiers_of(BATCH) == {"onednn"}
    assert tiers_of(f"{BATCH}_backward") == {"onednn"}


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("last", [False, True])
def test_channels_that_are_not_numbers(last: bool, xpu: torch.device) -> None:
    call = Batch((3, 16, 7, 9), last=last)
    given = call.operands(torch.float32)
    given["input"][0, 1, 2, 3] = torch.nan
    given["input"][1, 2, 2, 3] = torch.inf
    given["input"][:, 3] = 5.0  # no variance but eps
    both(call, given, xpu)


@pytest.mark.mappings("CPU")
def test_a_mean_far_from_zero(xpu: torch.device) -> None:
    call = Batch((16, 4, 32, 32))
    given = call.operands(torch.float32)
    given["input"] = torch.randn(call.sizes) + 1000
    expected = call(given)
    with kernel_policy("sycl"):
        actual = call({k: v.to(xpu) for k, v in given.items()})
    # Not the gradients of the parameters: of float32 means they are as good as those.
    for mine, theirs in zip(actual[:4], expected[:4], strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("wanted", ["input", "weight", "bias", "input weight"])
def test_some_of_the_gradients_of_a_batch(wanted: str, xpu: torch.device) -> None:
    given = Batch((3, 5, 7, 9)).operands(torch.float32)

    def gradients(device: torch.device | str) -> list[Tensor]:
        leaves = {k: v.to(device) for k, v in given.items()}
        picked = [leaves[k].requires_grad_() for k in wanted.split()]
        result = F.batch_norm(**leaves, training=True)
        return list(torch.autograd.grad(result.square().sum(), picked))

    with kernel_policy("sycl"):
        actual = gradients(xpu)
    for mine, theirs in zip(actual, gradients("cpu"), strict=True):
        assert_near(mine, theirs, 50)


@dataclass(frozen=True)
class Layer:
    sizes: tuple[int, ...]
    dims: int = 1
    weight: bool = True
    bias: bool = True
    gap: bool = False

    def operands(self, dtype: torch.dtype) -> list[Tensor]:
        generator = torch.Generator().manual_seed(len(self.sizes))
        x = torch.randn(self.sizes, generator=generator) * 2 + 1
        if self.gap:
            x = x.repeat_interleave(2, -1)[..., ::2]
        shape = self.sizes[-self.dims :]
        rest = [self.weight, self.bias]
        return [
            x.to(dtype),
            *(torch.rand(shape, generator=generator).to(dtype) for g in rest if g),
        ]

    def __call__(self, given: list[Tensor]) -> list[Tensor]:
        """Result, means, deviations, and the gradients."""
        leaves = [t.detach().requires_grad_() for t in given]
        x, *rest = leaves
        weight = rest.pop(0) if self.weight else None
        bias = rest.pop(0) if self.bias else None
        results = torch.native_layer_norm(
            x, self.sizes[-self.dims :], weight, bias, 1e-5
        )
        weights = torch.linspace(-1, 2, x.numel()).reshape(self.sizes)
        grads = torch.autograd.grad(results[0], leaves, weights.to(x))
        return [*(r.detach() for r in results), *grads]


LAYERS = [
    Layer((7, 33)),
    Layer((2, 5, 64)),
    Layer((2, 5, 64), weight=False, bias=False),
    Layer((2, 5, 64), bias=False),
    Layer((2, 3, 4, 5), dims=2),
    Layer((4, 6), dims=2),
    Layer((3, 1000)),
    Layer((5, 1)),
    Layer((6, 40), gap=True),
]


def both_of_layers(call: Layer, given: list[Tensor], xpu: torch.device) -> None:
    expected = call(given)
    _C.reset_op_report()
    with kernel_policy("sycl"):
        actual = call([t.to(xpu) for t in given])
    for mine, theirs in zip(actual, expected, strict=True):
        # Without a variance the sums that cancel are multiplied by 1 / sqrt(eps).
        assert_near(mine, theirs, 500 if call.sizes[-1] == 1 else 20)


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str
)
@pytest.mark.parametrize("call", LAYERS, ids=str)
def test_layers(call: Layer, dtype: torch.dtype, xpu: torch.device) -> None:
    both_of_layers(call, call.operands(dtype), xpu)
    check_on_queue(LAYER, f"{LAYER}_backward")


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_some_of_the_gradients_of_a_layer(
    wanted: tuple[int, ...], xpu: torch.device
) -> None:
    given = Layer((7, 33)).operands(torch.float32)

    def gradients(device: torch.device | str) -> list[Tensor]:
        leaves = [t.to(device) for t in given]
        picked = [leaves[each].requires_grad_() for each in wanted]
        result = F.layer_norm(leaves[0], (33,), *leaves[1:])
        return list(torch.autograd.grad(result.square().sum(), picked))

    with kernel_policy("sycl"):
        actual = gradients(xpu)
    for mine, theirs in zip(actual, gradients("cpu"), strict=True):
        assert_near(mine, theirs, 50)


@pytest.mark.mappings("CPU", "AUTO")
@pytest.mark.parametrize("call", LAYERS, ids=str)
def test_onednn_takes_layers_on_a_cpu(call: Layer, xpu: torch.device) -> None:
    with prefer("CPU"):
        both_of_layers(call, call.operands(torch.float32), xpu)
    assert tiers_of(LAYER) == {"onednn"}
    assert tiers_of(f"{LAYER}_backward") == {"onednn"}


@pytest.mark.mappings("CPU")
def test_lines_that_are_not_numbers(xpu: torch.device) -> None:
    call = Layer((6, 64))
    x, *rest = call.operands(torch.float32)
    x[1, 3] = torch.nan
    x[2, 5] = torch.inf
    x[3] = -torch.inf
    x[4] = 7.0
    expected = call([x, *rest])
    with kernel_policy("sycl"):
        actual = call([t.to(xpu) for t in (x, *rest)])
    for k, (mine, theirs) in enumerate(zip(actual, expected, strict=True)):
        # The mean of infinite numbers is infinite or NaN, and what is made of it NaN.
        rows = [0, 1, 4, 5] if k in (1, 2) else slice(None)
        assert_near(mine[rows], theirs[rows], 20)


@pytest.mark.mappings("CPU")
def test_halves_and_doubles_are_steps(xpu: torch.device) -> None:
    for dtype in (torch.float64, torch.float16):
        x = torch.rand(4, 6, 8, device=xpu, dtype=dtype)
        _C.reset_op_report()
        with kernel_policy("sycl"):
            F.layer_norm(x, (8,))
            F.batch_norm(x, None, None, training=True)
        assert tiers_of(LAYER) == {"sycl"}
        assert tiers_of(BATCH) == {"sycl"}


@pytest.mark.mappings("CPU")
def test_captures_are_steps(xpu: torch.device) -> None:
    x = torch.rand(4, 6, 8, device=xpu)
    _C.reset_op_report()
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        normal = F.batch_norm(F.layer_norm(x, (8,)), None, None, training=True)
    assert tiers_of(LAYER) == tiers_of(BATCH) == {"sycl"}
    for start in (0, 1):
        host = torch.rand(4, 6, 8) + start
        x.copy_(host)
        graph.replay()
        expected = F.batch_norm(F.layer_norm(host, (8,)), None, None, training=True)
        assert_near(normal, expected, 20)
