"""Empty operands, formats, NaN, and what each op promises beside its values."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_types import has_bf16
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import xpurt
from fused_ops.fused_cases import ACTIVATIONS, convolution, on, ops
from fused_ops.test_fused_values import near
from xpurt import _C

MANY = 512  # rows: a product of so many is one primitive on a CPU


def empty(*sizes: int) -> Any:
    return lambda device: torch.zeros(sizes, device=device, requires_grad=True)


EMPTY: dict[str, tuple[str, list[Any], list[tuple[int, ...]]]] = {
    "linear_no_rows": ("linear_activation", [empty(0, 3), empty(4, 3)], [(0, 4)]),
    "linear_no_inputs": (
        "linear_activation", [empty(2, 0), empty(4, 0), empty(4), "sigmoid"], [(2, 4)],
    ),
    "convolution": (
        "conv_bn_activation",
        [empty(0, 2, 5), empty(4, 2, 3), None, empty(4), empty(4), empty(4), empty(4)],
        [(0, 4, 3)],
    ),
    "rotary": (
        "rotary_embedding",
        [empty(0, 8), empty(0, 8), empty(1, 4), empty(1, 4)],
        [(0, 8), (0, 8)],
    ),
    "rotary_no_pairs": (
        "rotary_embedding",
        [empty(2, 8), empty(2, 8), empty(2, 0), empty(2, 0)],
        [(2, 8), (2, 8)],
    ),
    "rms_norm": ("rms_norm_add", [empty(0, 3), None, empty(3)], [(0, 3), (0, 3)]),
    "rms_norm_no_columns": (
        "rms_norm_add", [empty(2, 0), empty(2, 0), empty(0)], [(2, 0), (2, 0)],
    ),
    "swiglu": ("swiglu", [empty(3, 0), empty(3, 0)], [(3, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_empty_operands(name: str, device: str, xpu: torch.device) -> None:
    op, operands, sizes = EMPTY[name]
    given = [each(device) if callable(each) else each for each in operands]
    if name == "convolution":
        given[5:] = (each.detach() for each in given[5:])
    made = getattr(ops, op)(*given)
    results = made if isinstance(made, tuple) else (made,)
    assert [tuple(each.shape) for each in results] == sizes
    sum(each.sum() for each in results).backward()
    for each in given:
        if isinstance(each, Tensor) and each.requires_grad:
            assert each.grad is not None
            assert each.grad.shape == each.shape
            if name in ("linear_no_rows", "rms_norm"):
                assert not each.grad.any()


def test_the_loss_of_no_rows(device: str, xpu: torch.device) -> None:
    hidden, weight = torch.zeros(0, 3, device=device), torch.zeros(4, 3, device=device)
    target = torch.zeros(0, dtype=torch.int64, device=device)
    loss = ops.fused_cross_entropy
    assert loss(hidden, weight, target).isnan()
    assert loss(hidden, weight, target, None, -100, "sum") == 0
    assert loss(hidden, weight, target, None, -100, "none").shape == (0,)


def test_a_loss_of_ignored_rows_has_no_gradient(device: str, xpu: torch.device) -> None:
    hidden = torch.randn(3, 2).to(device).requires_grad_()
    weight = torch.randn(4, 2).to(device).requires_grad_()
    target = torch.full((3,), 9, device=device)
    made = ops.fused_cross_entropy(hidden, weight, target, None, 9)
    assert made.isnan()
    made.backward()
    assert hidden.grad is not None
    assert not hidden.grad.any()


def test_no_sequence_and_no_block(device: str, xpu: torch.device) -> None:
    cache = torch.ones(2, 4, 2, 8, device=device)
    for sequences, blocks in ((0, 3), (2, 0)):
        made = ops.paged_attention(
            torch.ones(sequences, 4, 8, device=device),
            cache,
            cache,
            torch.zeros(sequences, blocks, dtype=torch.int32, device=device),
            torch.zeros(sequences, dtype=torch.int32, device=device),
            1.0,
        )
        assert made.shape == (sequences, 4, 8)
        assert not made.any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nan_stays_nan(activation: str, device: str, xpu: torch.device) -> None:
    """oneDNN's ReLU would make it 0."""
    x = torch.tensor([[float("nan"), 1.0], [2.0, 3.0]], device=device)
    weight = torch.eye(2, device=device)
    made = ops.linear_activation(x.repeat(MANY, 1), weight, None, activation)
    assert made.isnan()[-2:].tolist() == [[True, True], [False, False]]
    statistics = torch.zeros(2, device=device), torch.ones(2, device=device)
    made = ops.conv_bn_activation(
        x.t()[None], weight[..., None], None, None, None, *statistics, 0.0, [1], [0],
        [1], 1, activation,
    )  # fmt: skip
    assert made.isnan().tolist() == [[[True, False], [True, False]]]


def primitives() -> set[str]:
    return {row[0] for row in _C.op_report() if row[1] == "onednn"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_products_of_many_rows(
    activation: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    x, weight = torch.randn(2, MANY, 8, dtype=dtype), torch.randn(6, 8, dtype=dtype)
    bias = torch.randn(6, dtype=dtype)
    _C.reset_op_report()
    made = ops.linear_activation(x.to(xpu), weight.to(xpu), bias.to(xpu), activation)
    expected = ACTIVATIONS[activation](
        F.linear(x.double(), weight.double(), bias.double())
    )
    near([made], [expected], 1e-5 if dtype == torch.float32 else 3e-2)
    if xpurt.get_xpu_mapping() == "CPU":
        computed = dtype != torch.bfloat16 or has_bf16()
        is_one = activation not in ("none", "relu") and computed
        assert ("xpurt::fused_product" in primitives()) == is_one


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("axes", [2, 3])
def test_an_activation_in_the_primitive(
    axes: int, dtype: torch.dtype, xpu: torch.device
) -> None:
    format = torch.channels_last if axes == 2 else torch.channels_last_3d
    x = torch.randn(2, 4, *[5] * axes, dtype=dtype).to(memory_format=format)
    weight = torch.randn(6, 4, *[3] * axes, dtype=dtype)
    rest = None, None, None, torch.randn(6), torch.rand(6) + 0.5, 1e-5, [2], [1]
    operands = on("xpu", (x, weight, *rest))
    _C.reset_op_report()
    made = ops.conv_bn_activation(*operands, [1], 1, "silu")
    exact = [e.double() if isinstance(e, Tensor) else e for e in (x, weight, *rest)]
    assert made.is_contiguous(memory_format=format)
    near(
        [made],
        [convolution(*exact, [1], 1, "silu")],
        1e-5 if dtype == torch.float32 else 3e-2,
    )
    if xpurt.get_xpu_mapping() == "CPU":
        is_one = dtype == torch.float32
        assert ("xpurt::fused_convolution" in primitives()) == is_one


@pytest.mark.parametrize("axes", [2, 3])
def test_a_convolution_keeps_channels_last(
    axes: int, device: str, xpu: torch.device
) -> None:
    format = torch.channels_last if axes == 2 else torch.channels_last_3d
    x = torch.randn(2, 4, *[5] * axes).to(device)
    weight = torch.randn(6, 4, *[3] * axes).to(device)
    rest = None, None, None, torch.zeros(6, device=device), torch.ones(6, device=device)
    expected = ops.conv_bn_activation(x, weight, *rest)
    assert expected.is_contiguous()
    made = ops.conv_bn_activation(x.to(memory_format=format), weight, *rest)
    assert made.is_contiguous(memory_format=format)
    near([made], [expected], 1e-5)
    # PyTorch's convolution takes the format of a weight, too.
    made = ops.conv_bn_activation(x, weight.to(memory_format=format), *rest)
    assert made.is_contiguous()


def test_halves_of_one_projection(device: str, xpu: torch.device) -> None:
    projected = torch.randn(3, 5, 16).to(device).requires_grad_()
    made = ops.swiglu(*projected.chunk(2, -1))
    made.sum().backward()
    again = projected.detach().cpu().requires_grad_()
    gate, up = again.chunk(2, -1)
    expected = F.silu(gate) * up
    expected.sum().backward()
    near([made], [expected], 1e-6)
    assert projected.grad is not None
    assert again.grad is not None
    near([projected.grad], [again.grad], 1e-5)


def test_a_wider_residual_and_weight(device: str, xpu: torch.device) -> None:
    """Under autocast x is bfloat16 and the residual float32: the sum is float32."""
    x = torch.randn(4, 8).bfloat16().to(device).requires_grad_()
    residual = torch.randn(4, 8).to(device).requires_grad_()
    weight = torch.randn(8).to(device).requires_grad_()
    normed, added = ops.rms_norm_add(x, residual, weight, 1e-6)
    assert normed.dtype == added.dtype == torch.float32
    near([added], [(x + residual).detach().cpu()], 1e-6)
    (normed.sum() + added.sum()).backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.bfloat16
    alone, _ = ops.rms_norm_add(x, None, weight, 1e-6)
    assert alone.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_sum_is_rounded_and_the_norm_is_not(
    dtype: torch.dtype, device: str, xpu: torch.device
) -> None:
    """Only the results are rounded, so they are the nearest numbers, but for ties."""
    x, residual = torch.randn(2, 8, 512).bfloat16().to(device)
    weight = torch.randn(512, dtype=dtype).to(device)
    normed, added = ops.rms_norm_add(x, residual, weight, 1e-6)
    assert torch.equal(added, x + residual)
    exact = F.rms_norm(added.cpu().double(), (512,), weight.cpu().double(), 1e-6)
    same = normed.cpu() == exact.bfloat16()
    assert float(same.double().mean()) > 0.99


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_rotation_by_a_right_angle(
    interleaved: bool, device: str, xpu: torch.device
) -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], device=device)
    cos, sin = torch.zeros(2, device=device), torch.ones(2, device=device)
    made, _ = ops.rotary_embedding(x, x, cos, sin, interleaved)
    expected = [-2, 1, -4, 3, 5] if interleaved else [-3, -4, 1, 2, 5]
    assert made.tolist() == expected


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that an op made."""

    numel = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        for each in made if isinstance(made, tuple | list) else [made]:
            if isinstance(each, Tensor):
                self.numel = max(self.numel, each.numel())
        return made


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_whole_logits_are_never_there(
    reduction: str, device: str, xpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the forward pass nor in the backward pass. A mode does not see into a
    kernel, so the kernels are called as the functions that they are."""
    from xpurt.fused_ops import cross_entropy

    hidden = torch.randn(96, 4).to(device)
    weight = torch.randn(50, 4).to(device)
    target = torch.arange(96, device=device) % 50
    rest = hidden, weight, target, None, -100, reduction, 0.1, 8
    with torch.no_grad(), Largest() as seen:
        cross_entropy._forward(*rest, [True, True, False])
        cross_entropy._gradients(
            torch.ones(96, device=device), *rest, [True, True, False]
        )
    assert seen.numel == 8 * 50  # the logits of a chunk


def test_chunks_do_not_change_the_loss(device: str, xpu: torch.device) -> None:
    hidden, weight = torch.randn(200, 6).to(device), torch.randn(9, 6).to(device)
    target = (torch.arange(200) % 9).to(device)
    losses = [
        ops.fused_cross_entropy(hidden, weight, target, None, -100, "sum", 0.0, rows)
        for rows in (0, 1, 64, 200, 1000)
    ]
    for each in losses[1:]:
        near([each], [losses[0]], 1e-5)
