"""Weights in GGUF's blocks, against the package gguf and float64."""

import math
from pathlib import Path

import gguf
import pytest
import torch
from gguf import GGMLQuantizationType as Type
from own_process import run
from torch import Tensor

TYPES = [
    Type.Q4_0,
    Type.Q4_1,
    Type.Q5_0,
    Type.Q5_1,
    Type.Q8_0,
    Type.Q4_K,
    Type.Q5_K,
    Type.Q6_K,
]
HALVES = {Type.Q4_1: [0, 2], Type.Q5_1: [0, 2], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2]}
HALVES[Type.Q6_K] = [208]


def blocks_of(kind: Type, rows: int, columns: int) -> Tensor:
    """Random bytes, with scales from 0.001 to 0.011."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = torch.randint(0, 256, (rows, columns // elements, size)).byte()
    for at in HALVES.get(kind, [0]):
        scales = torch.rand(rows, columns // elements, 1) * 0.01 + 0.001
        blocks[..., at : at + 2] = scales.half().view(torch.uint8)
    return blocks.flatten(1)


def values_of(blocks: Tensor, kind: Type) -> Tensor:
    """As the package gguf computes them, in float32."""
    return torch.from_numpy(gguf.quants.dequantize(blocks.numpy(), kind))


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_values(device: str, kind: Type) -> None:
    blocks = blocks_of(kind, 7, 512)
    found = torch.ops.xpurt.block_values(blocks.to(device), kind, torch.float32)
    wanted = values_of(blocks, kind)
    # Factor times integer plus offset may be rounded once or twice.
    bound = 2**-23 * wanted.abs().amax(1, keepdim=True)
    assert ((found.cpu() - wanted).abs() <= bound).all()
    narrow = torch.ops.xpurt.block_values(blocks.to(device), kind, torch.bfloat16)
    assert torch.equal(narrow.cpu(), found.cpu().bfloat16())


def bound_of(x: Tensor, weight: Tensor, wanted: Tensor, rows: int) -> Tensor:
    """Of the errors of a product.

    The result is rounded to the type of x. With few rows x is, in parts of 32, off by
    2^-16 of its largest (in float32 not at all); with more rows the weights may be
    rounded to bfloat16. The sums are those of float32.
    """
    sizes, size = x.double().abs(), weight.double().abs()
    bound = 2.0**-22 * math.sqrt(x.size(-1)) * (sizes @ size.T)
    bound += torch.finfo(x.dtype).eps / 2 * wanted.abs()
    if x.dtype != torch.float32:
        largest = (
            sizes.unflatten(-1, (-1, 32)).amax(-1, keepdim=True).expand(-1, -1, 32)
        )
        bound += 2.0**-16 * (largest.flatten(1) @ size.T)
    if x.dtype == torch.bfloat16 and rows > 6:
        bound += 2.0**-9 * (sizes @ size.T)
    return bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7, 16, 33])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_products(device: str, kind: Type, rows: int, dtype: torch.dtype) -> None:
    blocks, bias = blocks_of(kind, 70, 512), torch.randn(70)
    weight = values_of(blocks, kind)
    x = (torch.randn(rows, 512) + 0.5).to(dtype)
    wanted = x.double() @ weight.double().T + bias.double()
    given = x.to(device), blocks.to(device), int(kind), bias.to(device)
    found = torch.ops.xpurt.block_linear(*given)
    assert found.dtype == dtype
    error = (found.cpu().double() - wanted).abs()
    assert (error <= bound_of(x, weight, wanted, rows)).all()


def test_dimensions_before_the_last_are_kept(device: str) -> None:
    blocks, x = blocks_of(Type.Q4_0, 5, 64).to(device), torch.randn(2, 3, 64)
    found = torch.ops.xpurt.block_linear(x.to(device), blocks, 2)
    assert found.shape == (2, 3, 5)
    one = torch.ops.xpurt.block_linear(x[1, 2].to(device), blocks, 2)
    assert one.shape == (5,)
    torch.testing.assert_close(one, found[1, 2], rtol=1e-6, atol=1e-6)
    assert torch.ops.xpurt.block_linear(x[:0].to(device), blocks, 2).shape == (0, 3, 5)


@pytest.mark.parametrize("scale", [1e-35, 1e-25, 1.0, 1e35])
def test_activations_of_any_size(device: str, scale: float) -> None:
    blocks, x = blocks_of(Type.Q8_0, 40, 256), torch.randn(3, 256) * scale
    x[0] *= 1e-3
    weight = values_of(blocks, Type.Q8_0)
    wanted = x.double() @ weight.double().T
    found = torch.ops.xpurt.block_linear(x.to(device), blocks.to(device), 8)
    error = (found.cpu().double() - wanted).abs()
    assert (error <= bound_of(x, weight, wanted, 3)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_spoils_its_own_row(device: str, bad: float) -> None:
    blocks, x = blocks_of(Type.Q4_K, 40, 256), torch.randn(3, 256)
    x[1, 5] = bad
    found = torch.ops.xpurt.block_linear(x.to(device), blocks.to(device), 12)
    finite = found.isfinite().cpu()
    assert finite[0].all()
    assert not finite[1].any()
    assert finite[2].all()


@pytest.mark.parametrize("threads", [1, 2])
def test_processors_without_avx2_compute_the_same(threads: int) -> None:
    program = f"""
import torch
from quantization.test_blocks import TYPES, blocks_of, bound_of, values_of

torch.set_num_threads({threads})
assert torch.backends.cpu.get_cpu_capability() == "DEFAULT"
for kind in TYPES:
    blocks = blocks_of(kind, 300, 512)
    weight = values_of(blocks, kind)
    x = torch.randn(5, 512) + 0.5
    wanted = x.double() @ weight.double().T
    found = torch.ops.xpurt.block_linear(x, blocks, int(kind))
    error = (found.double() - wanted).abs()
    assert (error <= bound_of(x, weight, wanted, 5)).all(), kind
    values = torch.ops.xpurt.block_values(blocks, int(kind), torch.float32)
    torch.testing.assert_close(values, weight, rtol=2**-22, atol=1e-6)
"""
    tests = str(Path(__file__).parents[1])
    run(program, ATEN_CPU_CAPABILITY="default", PYTHONPATH=tests).check_returncode()


def test_a_type_that_is_not_read(device: str) -> None:
    x, blocks = torch.zeros(1, 256), torch.zeros(4, 84, dtype=torch.uint8)
    x, blocks = x.to(device), blocks.to(device)
    message = r"Q6_K \(14\) of GGUF; found type 10"
    with pytest.raises(ValueError, match=message):
        torch.ops.xpurt.block_linear(x, blocks, 10)
    with pytest.raises(ValueError, match=message):
        torch.ops.xpurt.block_values(blocks, 10, torch.float32)


@pytest.mark.parametrize(
    "blocks",
    [torch.zeros(4, 19).byte(), torch.zeros(72).byte(), torch.zeros(4, 18).char()],
    ids=["bytes", "dimensions", "type"],
)
def test_what_are_no_blocks(device: str, blocks: Tensor) -> None:
    with pytest.raises(ValueError, match="wants uint8 of shape"):
        torch.ops.xpurt.block_linear(
            torch.zeros(1, 32, device=device), blocks.to(device), 2
        )


def test_activations_of_a_wrong_size_or_type(device: str) -> None:
    blocks = blocks_of(Type.Q4_0, 4, 64).to(device)
    with pytest.raises(ValueError, match="wants 64 input channels"):
        torch.ops.xpurt.block_linear(torch.zeros(1, 32, device=device), blocks, 2)
    x = torch.zeros(1, 64, dtype=torch.int64, device=device)
    with pytest.raises(TypeError, match="floating point"):
        torch.ops.xpurt.block_linear(x, blocks, 2)


def test_compilers_know_the_shapes(device: str) -> None:
    blocks = blocks_of(Type.Q5_K, 4, 256).to(device)
    x = torch.randn(2, 256, device=device)
    checks = "test_schema", "test_faketensor", "test_aot_dispatch_dynamic"
    torch.library.opcheck(
        torch.ops.xpurt.block_linear.default, (x, blocks, 13), test_utils=checks
    )
    torch.library.opcheck(
        torch.ops.xpurt.block_values.default,
        (blocks, 13, torch.float32),
        test_utils=checks,
    )


def test_a_gradient_is_refused(device: str) -> None:
    blocks = blocks_of(Type.Q4_0, 4, 64).to(device)
    x = torch.randn(1, 64, device=device, requires_grad=True)
    with pytest.raises(NotImplementedError, match="for inference and has none"):
        torch.ops.xpurt.block_linear(x, blocks, 2).sum().backward()
