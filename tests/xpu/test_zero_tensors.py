"""Tensors of zeros without memory, as autograd makes them: `torch._efficientzerotensor`."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import xpurt


def zeros(
    *sizes: int, device: torch.device | str, dtype: torch.dtype | None = None
) -> Tensor:
    made: Tensor = torch._efficientzerotensor(sizes, device=device, dtype=dtype)
    assert made._is_zerotensor()
    return made


# Each of the tensor of zeros and of one of ones, both of (3, 4).
USES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "clone": lambda z, x: z.clone(),
    "copied": lambda z, x: x.copy_(z),
    "copied to another dtype": lambda z, x: x.double().copy_(z),
    "copied to other strides": lambda z, x: x.clone().view(4, 3).t().copy_(z),
    "copied to many": lambda z, x: x.copy_(z[0]),
    "a view": lambda z, x: x[0].copy_(z.view(4, 3).t()[0].repeat(2)[:4]),
    "added in place": lambda z, x: x.add_(z),
    "multiplied": lambda z, x: (z * x).clone(),
    "beside a number": lambda z, x: z + 2,
    "dot": lambda z, x: z[0].dot(x[0]).clone(),
    "second in dot": lambda z, x: x[0].dot(z[0]).clone(),
    "vdot": lambda z, x: torch.vdot(z[0].to(torch.cfloat), x[0].to(torch.cfloat)).clone(),
    "product": lambda z, x: z @ x.t(),
    "linear": lambda z, x: F.linear(z, x),
    "cat": lambda z, x: torch.cat([z, x]),
    "written to an index": lambda z, x: x.index_put_((torch.tensor([0]),), z[:1]),
    "foreach": lambda z, x: torch._foreach_add([z], [x])[0],
    "sum": lambda z, x: z.sum(),
    "where": lambda z, x: torch.where(x > 0, z, x),
    "gradient of a sign": lambda z, x: torch.autograd.grad(
        x.requires_grad_().sgn().sum(), x
    )[0].clone(),
}  # fmt: skip


@pytest.mark.parametrize("policy", ["auto", "sycl", "native"])
@pytest.mark.parametrize("use", USES)
def test_a_use(use: str, policy: str, xpu: torch.device) -> None:
    def on(device: torch.device | str) -> Tensor:
        made: Tensor = USES[use](
            zeros(3, 4, device=device), torch.ones(3, 4, device=device)
        )
        return made

    expected = on("cpu")
    with xpurt.kernel_policy(policy):
        found = on(xpu)
    assert found.device == xpu
    torch.testing.assert_close(found.cpu(), expected)


def test_between_devices(xpu: torch.device) -> None:
    on_xpu, on_cpu = zeros(3, device=xpu), zeros(3, device="cpu")
    for found in (
        torch.ones(3).copy_(on_xpu),
        torch.ones(3, device=xpu).copy_(on_cpu),
        on_xpu.cpu().clone(),
        on_cpu.to(xpu).clone(),
        on_xpu.double(),
    ):
        assert found.tolist() == [0, 0, 0]


def test_it_can_not_be_written_to(xpu: torch.device) -> None:
    z, x = zeros(3, device=xpu), torch.ones(3, device=xpu)
    for write in (z.copy_, z.add_, partial(torch.add, x, out=z)):
        with pytest.raises(RuntimeError, match=r"zeros without memory|immutable"):
            write(x)
    with pytest.raises(RuntimeError, match="can't be expanded"):
        torch.ones(2, device=xpu).copy_(z)
