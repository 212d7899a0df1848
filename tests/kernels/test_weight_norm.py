"""Weights by their norm and direction, and complex numbers by their parts."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.kernel_forced import forced
from kernels.kernel_tolerance import assert_near
from xpurt import kernel_policy

REAL = (torch.float32, torch.float64)


@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize(
    "dtype", [*REAL, torch.bfloat16, torch.float16], ids=lambda d: str(d)[6:]
)
def test_weight_norm(dtype: torch.dtype, xpu: torch.device) -> None:
    op = torch._weight_norm_interface
    back = torch.ops.aten._weight_norm_interface_backward
    for shape, dim in (((4, 3), 0), ((4, 3), 1), ((5, 3, 2, 2), 0), ((6,), 0)):
        v, grad = torch.randn(2, *shape).to(dtype)
        g = torch.rand([n if d == dim else 1 for d, n in enumerate(shape)]).to(dtype)
        w, norms = op(v, g, dim)
        with forced("aten::_weight_norm_interface"):
            found = op(v.to(xpu), g.to(xpu), dim)
        for ours, theirs in zip(found, (w, norms), strict=True):
            assert_near(ours, theirs)
        given = [each.to(xpu) for each in (grad, v, g, norms)]
        with forced("aten::_weight_norm_interface_backward"):
            found = back(*given, dim)
        for ours, theirs in zip(found, back(grad, v, g, norms, dim), strict=True):
            assert_near(ours, theirs, factor=8)


Make = Callable[[Tensor, Tensor], Tensor]


@pytest.mark.parametrize("make", [torch.complex, torch.polar])
@pytest.mark.parametrize("dtype", REAL)
def test_parts(make: Make, dtype: torch.dtype, xpu: torch.device) -> None:
    """Values and strides, also of broadcast operands and of an `out=`."""
    x, y = torch.rand(2, 4, 5, dtype=dtype)

    def into(size: tuple[int, ...]) -> Make:
        def made(a: Tensor, b: Tensor) -> Tensor:
            out = torch.empty(size, dtype=dtype.to_complex(), device=a.device)
            return make(a, b, out=out)  # type: ignore[call-arg]

        return made

    name = f"aten::{make.__name__}"
    for a, b in ((x, y), (x.t(), y.t()), (x, y[0]), (x[0, 0], y[0, 0]), (x[:0], y[:0])):
        for form in (make, into((0,)), into(tuple((a + b).shape))):
            with forced(name) if a.numel() else kernel_policy("sycl"):
                found = form(a.to(xpu), b.to(xpu))
            torch.testing.assert_close(
                found.cpu(), form(a, b), rtol=1e-6, atol=1e-7, check_stride=True
            )


@pytest.mark.parametrize("make", [torch.complex, torch.polar])
@pytest.mark.parametrize("types", [("float32", "float64"), ("int32", "int32")])
def test_wrong_parts(make: Make, types: tuple[str, str], xpu: torch.device) -> None:
    parts = [torch.ones(3, dtype=getattr(torch, name)) for name in types]
    with pytest.raises(RuntimeError) as expected:
        make(*parts)
    with pytest.raises(RuntimeError) as found:
        make(*(part.to(xpu) for part in parts))
    assert str(found.value) == str(expected.value)
    wrong = torch.empty(3, dtype=torch.complex128, device=xpu)
    with pytest.raises(RuntimeError, match="Expected object of scalar type"):
        make(torch.ones(3, device=xpu), torch.ones(3, device=xpu), out=wrong)  # type: ignore[call-arg]
