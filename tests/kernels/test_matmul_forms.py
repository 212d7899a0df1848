"""The two kernels of matrix products, for devices that have no product of oneDNN's.

Which one a device gets goes by the width of its vectors: 1 stands for GPUs, whose
work-items share a tile; one item computes a block with vectors of 4, 8 or 16.
"""

import itertools
from collections.abc import Iterator

import pytest
import torch
from own_process import output

from kernels.kernel_forced import on_queue
from kernels.kernel_tolerance import assert_near
from xpurt import _C

SIZES = [1, 2, 11, 12, 13, 31, 33, 100, 257]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]

pytestmark = pytest.mark.mappings("GPU")


@pytest.fixture(params=[1, 8, 16], ids=lambda width: f"width-{width}")
def width(request: pytest.FixtureRequest) -> Iterator[int]:
    """Replaces the vector width that devices report."""
    _C.testing.force_vector_width(request.param)
    yield request.param
    _C.testing.force_vector_width(0)


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(shape).sub(0.5).to(dtype)


def between_nans(host: torch.Tensor, xpu: torch.device) -> torch.Tensor:
    """The matrix within a larger one: what lies around it is not to be used."""
    around = torch.full((host.shape[-2] + 2, host.shape[-1] + 3), float("nan"))
    around = around.to(host.dtype).expand(*host.shape[:-2], -1, -1).to(xpu).clone()
    inner = around[..., 1:-1, 2:-1]
    inner.copy_(host)
    return inner


def written_within(expected: torch.Tensor, xpu: torch.device) -> torch.Tensor:
    """Room for a result with other numbers around it."""
    room = torch.full((expected.shape[0] + 2, expected.shape[1] + 2), 7.0)
    return room.to(expected.dtype).to(xpu)


def test_every_size(width: int, xpu: torch.device) -> None:
    for m, n, k in itertools.product(SIZES, repeat=3):
        a, b = numbers(m, k), numbers(k, n)
        room = written_within(a @ b, xpu)
        torch.mm(a.to(xpu), b.to(xpu), out=room[1:-1, 1:-1])
        expected = torch.full(room.shape, 7.0)
        expected[1:-1, 1:-1] = a @ b
        assert_near(room, expected, 20)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_layout(width: int, dtype: torch.dtype, xpu: torch.device) -> None:
    for m, n, k in [(1, 33, 100), (13, 31, 12), (100, 11, 257), (150, 170, 140)]:
        a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
        lefts = [a.to(xpu), between_nans(a, xpu), between_nans(a.mT, xpu).mT]
        rights = [b.to(xpu), between_nans(b, xpu), between_nans(b.mT, xpu).mT]
        lefts.append(torch.stack([a, a], -1).to(xpu)[..., 1])
        rights.append(torch.stack([b, b], -1).to(xpu)[..., 1])
        for x, y in itertools.product(lefts, rights):
            actual = on_queue("aten::mm", lambda x=x, y=y: x @ y)
            assert_near(actual, a @ b, 20)
        x, y = numbers(1, k, dtype=dtype), numbers(k, 1, dtype=dtype)
        actual = x.to(xpu).expand(m, k) @ y.to(xpu).expand(k, n)
        assert_near(actual, x.expand(m, k) @ y.expand(k, n), 20)
        room = torch.zeros(n, 2 * m, dtype=dtype, device=xpu)
        torch.mm(lefts[0], rights[0], out=room.t()[::2])
        assert_near(room.t()[::2].clone(), a @ b, 20, check_stride=False)
        assert (room.t()[1::2] == 0).all()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_batches_and_what_is_added(
    width: int, dtype: torch.dtype, xpu: torch.device
) -> None:
    a, b = numbers(3, 13, 150, dtype=dtype), numbers(3, 150, 35, dtype=dtype)
    assert_near(a.to(xpu) @ b.to(xpu), a @ b, 20)
    c = numbers(3, 13, 35, dtype=dtype)
    how = {"alpha": 0.5, "beta": 2.0}
    for added in [c, c[:1], c[:, :1], c[..., :1], c[0, 0], c.mT.contiguous().mT]:
        actual = torch.baddbmm(added.to(xpu), a.to(xpu), b.to(xpu), **how)
        assert_near(actual, torch.baddbmm(added, a, b, **how), 20)
    ours = c[0].to(xpu)
    on_queue("aten::addmm_", lambda: ours.addmm_(a[0].to(xpu), b[0].to(xpu), **how))
    assert_near(ours, c[0].clone().addmm_(a[0], b[0], **how), 20)
    ours = c[0].t().contiguous().to(xpu).t()
    ours.addmm_(a[0].to(xpu), b[0].to(xpu), **how)
    theirs = c[0].t().contiguous().t().addmm_(a[0], b[0], **how)
    assert_near(ours, theirs, 20)
    nans = torch.full_like(c[0], float("nan"))
    actual = torch.addmm(nans.to(xpu), a[0].to(xpu), b[0].to(xpu), beta=0)
    assert_near(actual, a[0] @ b[0], 20)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("gelu", [False, True])
def test_activations(
    width: int, gelu: bool, dtype: torch.dtype, xpu: torch.device
) -> None:
    a, b = numbers(14, 200, dtype=dtype), numbers(200, 40, dtype=dtype)
    a[3, 4] = float("nan")
    c = numbers(40, dtype=dtype)
    function = torch._addmm_activation
    expected = function(c, a, b, use_gelu=gelu)
    actual = function(c.to(xpu), a.to(xpu), b.to(xpu), use_gelu=gelu)
    assert_near(actual, expected, 20)


def test_nothing_to_add_up(width: int, xpu: torch.device) -> None:
    a, b, c = numbers(13, 0), numbers(0, 40), numbers(13, 40)
    assert (a.to(xpu) @ b.to(xpu) == 0).all()
    assert_near(torch.addmm(c.to(xpu), a.to(xpu), b.to(xpu), beta=2), 2 * c)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_and_infinity_stay_in_their_row_and_column(
    width: int, dtype: torch.dtype, xpu: torch.device
) -> None:
    a, b = numbers(25, 300, dtype=dtype), numbers(300, 70, dtype=dtype)
    a[3, 280], a[24, 5], b[1, 69], b[290, 0] = (
        float("nan"),
        float("inf"),
        -float("inf"),
        float("nan"),
    )
    assert_near(a.to(xpu) @ b.to(xpu), a @ b, 20)


def test_products_of_int8_in_every_layout(width: int, xpu: torch.device) -> None:
    for m, n, k in [(18, 7, 33), (40, 64, 170), (150, 200, 150)]:
        a = torch.randint(-128, 128, (m, k), dtype=torch.int8)
        b = torch.randint(-128, 128, (k, n), dtype=torch.int8)
        expected = torch._int_mm(a, b)
        for right in [b.to(xpu), b.t().contiguous().to(xpu).t()]:
            assert torch.equal(torch._int_mm(a.to(xpu), right).cpu(), expected)


def test_the_width_of_a_device_chooses() -> None:
    """In a process of its own, since it replaces the sources of the table."""
    code = """
    import dpctl, torch, xpurt
    from xpurt import _C
    from xpurt.kernels.registration import fail, make_source
    a = torch.ones(20, 30, device="xpu")
    def source(key, device):
        _, template, blocks, *_ = key.split(";")
        print(template, *blocks.split(",")[:1])
        return make_source(key, device)
    _C.set_source_callbacks(source, fail)
    xpurt.set_kernel_policy("sycl")
    gpu = next(d for d in dpctl.get_devices() if d.device_type.name == "gpu")
    print(gpu.native_vector_width_float)
    for width in (0, 1, 2, 4, 8, 16):
        _C.testing.force_vector_width(width)
        a @ a.t()
    """
    width, own, *others = output(code, XPURT_MAPPING="GPU").splitlines()
    every = [f"matmul_vectors {n}" for n in (4, 8, 16)]
    forms = {"1": "matmul_tiles 16", **dict(zip(("4", "8", "16"), every, strict=True))}
    assert own.strip() == forms.get(width, "matmul_tiles 16")
    # A kernel that is built is not requested again.
    assert {own.strip(), *map(str.strip, others)} == set(forms.values())
