"""What sorts: PyTorch's order with NaN last, and equal elements as they were.

Of equal elements PyTorch's CPU kernels choose any, but for stable sorts. So indices are
compared by what they point to.
"""

import math

import pytest
import torch

from kernels.kernel_forced import forced

DTYPES = [torch.float32, torch.bfloat16, torch.int32]
SHAPES = [((), 0), ((1,), 0), ((40,), 0), ((3, 1000), 1), ((37, 5), -2)]


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """With equal ones, and NaN and infinities if there are such."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-9, 9, shape, generator=generator).to(dtype)
    if dtype.is_floating_point and x.numel() > 4:
        x.view(-1)[::7] = math.nan
        x.view(-1)[3::11] = -math.inf
    return x


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
def test_sort_is_stable(
    dtype: torch.dtype, descending: bool, xpu: torch.device
) -> None:
    for shape, dim in SHAPES:
        x = numbers(shape, dtype)
        given = {"dim": dim, "descending": descending, "stable": True}
        with forced("aten::sort"):
            values, indices = torch.sort(x.to(xpu), **given)
        expected = torch.sort(x, **given)
        assert_same(values, expected.values)
        assert_same(indices, expected.indices)


def test_sort_of_a_strided_tensor(xpu: torch.device) -> None:
    x = numbers((50, 8), torch.float32).t()[::2]
    with forced("aten::sort"):
        values = x.to(xpu).sort(stable=True).values
    assert_same(values, x.sort(stable=True).values)
    assert values.stride() == x.sort().values.stride()


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 17])
def test_topk(k: int, largest: bool, xpu: torch.device) -> None:
    x = numbers((4, 33), torch.float32)
    with forced("aten::topk"):
        values, indices = x.to(xpu).topk(k, largest=largest)
    assert_same(values, x.topk(k, largest=largest).values)
    assert_same(x.gather(1, indices.cpu()), values.cpu())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
def test_kthvalue_and_mode(dtype: torch.dtype, xpu: torch.device) -> None:
    x = numbers((4, 33), dtype)
    for keepdim in (False, True):
        with forced("aten::kthvalue"):
            values, indices = x.to(xpu).kthvalue(7, dim=1, keepdim=keepdim)
        assert_same(values, x.kthvalue(7, dim=1, keepdim=keepdim).values)
        found = x.gather(1, indices.cpu().view(4, 1))
        assert_same(found.view(values.shape), values.cpu())
        x = x.nan_to_num()  # among NaN the CPU finds no order, and no mode
        with forced("aten::mode"):
            values, indices = x.to(xpu).mode(1, keepdim)
        assert_same(values, x.mode(1, keepdim).values)
        found = x.gather(1, indices.cpu().view(4, 1))
        assert_same(found.view(values.shape), values.cpu())


def test_too_many_of_the_largest(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="out of range"):
        torch.ones(3, device=xpu).topk(4)
