"""Optimizers that step in one op, and gradient scaling, against the CPU's.

Those of the CPU step in many ops: its fused kernel of SGD is wrong in bfloat16.
"""

from typing import Any

import pytest
import torch

import xpurt
from kernels.kernel_forced import ON_THE_QUEUE, check_on_queue, tiers_of
from xpurt import _C

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any], str]] = {
    "adam": (torch.optim.Adam, {"weight_decay": 0.1}, "_fused_adam_"),
    "amsgrad": (torch.optim.Adam, {"amsgrad": True, "maximize": True}, "_fused_adam_"),
    "adamw": (torch.optim.AdamW, {"betas": (0.0, 0.99)}, "_fused_adamw_"),
    "sgd": (torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.1}, "_fused_sgd_"),
    "nesterov": (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        "_fused_sgd_",
    ),
    "momentum": (
        torch.optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True},
        "_fused_sgd_",
    ),
    "adagrad": (torch.optim.Adagrad, {"lr_decay": 0.1}, "_fused_adagrad_"),
}


def stepped(
    name: str, device: torch.device | str, dtype: torch.dtype, **more: Any
) -> list[torch.Tensor]:
    """Parameters after three steps: a matrix, its transposed kin, and a number."""
    generator = torch.Generator().manual_seed(7)
    cls, settings, _ = OPTIMIZERS[name]
    made = [torch.randn(s, generator=generator) for s in ((5, 7), (4, 3), ())]
    parameters = [
        torch.nn.Parameter(m.to(device, dtype).t() if k == 1 else m.to(device, dtype))
        for k, m in enumerate(made)
    ]
    fused = torch.device(device).type == "xpu"
    optimizer = cls(parameters, fused=fused, **settings, **more)  # type: ignore[call-arg]
    for _ in range(3):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(device, dtype)
        optimizer.step()
    return [p.detach().cpu() for p in parameters]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
def test_steps(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        actual = stepped(name, xpu, dtype)
    check_on_queue(f"aten::{OPTIMIZERS[name][2]}")
    near = 1e-5 if dtype == torch.float32 else 3e-2
    torch.testing.assert_close(
        actual, stepped(name, "cpu", dtype), rtol=near, atol=near
    )


def laid_out_otherwise(name: str, device: torch.device, fused: bool) -> list[Any]:
    """Parameters after steps whose gradients, and so states, have other strides."""
    generator = torch.Generator().manual_seed(3)
    cls, settings, _ = OPTIMIZERS[name]
    matrix = torch.randn(4, 6, generator=generator)
    images = torch.randn(2, 3, 4, 4, generator=generator)
    made = [
        matrix,
        matrix.clone().t(),
        images.contiguous(memory_format=torch.channels_last),
    ]
    parameters = [torch.nn.Parameter(m.to(device)) for m in made]
    optimizer = cls(parameters, fused=fused, **settings)  # type: ignore[call-arg]
    for _ in range(3):
        for p in parameters[:2]:
            drawn = torch.randn(p.shape[::-1], generator=generator)
            p.grad = (drawn.t() if p is parameters[0] else drawn.t().contiguous()).to(
                device
            )
        parameters[2].grad = torch.randn(images.shape, generator=generator).to(device)
        optimizer.step()
    return [p.detach().cpu() for p in parameters]


@pytest.mark.parametrize("policy", ["auto", "native", "sycl"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_are_laid_out_otherwise(
    name: str, policy: str, xpu: torch.device
) -> None:
    """PyTorch's CPU kernels mix up the elements then."""
    with xpurt.kernel_policy(policy):
        actual = laid_out_otherwise(name, xpu, fused=True)
    expected = laid_out_otherwise(name, torch.device("cpu"), fused=False)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_a_learning_rate_is_a_tensor(xpu: torch.device) -> None:
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        actual = stepped("adam", xpu, torch.float32, lr=torch.tensor(0.1, device=xpu))
    check_on_queue("aten::_fused_adam_")
    expected = stepped("adam", "cpu", torch.float32, lr=0.1)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("broken", [False, True])
def test_scaled_gradients(broken: bool, xpu: torch.device) -> None:
    """A step that found an infinity leaves the parameters, and halves the scale."""
    found = {}
    for device in ("cpu", xpu):
        p = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).to(device))
        optimizer = torch.optim.SGD([p], lr=0.1, foreach=False)
        kind = torch.device(device).type
        scaler = torch.amp.GradScaler(kind, init_scale=8.0, growth_interval=1)
        _C.reset_op_report()
        with xpurt.kernel_policy("sycl"):
            scaler.scale((p * p).sum()).backward()  # type: ignore[no-untyped-call]
            assert p.grad is not None
            if broken:
                p.grad[1, 2] = float("inf")
            scaler.step(optimizer)
            scaler.update()
        found[kind] = (p.detach().cpu(), scaler.get_scale())
    for op in ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"):
        assert tiers_of(f"aten::{op}") & ON_THE_QUEUE
    torch.testing.assert_close(found["xpu"], found["cpu"])
    assert found["xpu"][1] == (4.0 if broken else 16.0)


@pytest.mark.parametrize("found", [0.0, 1.0])
def test_a_fused_step_unscales_itself(found: float, xpu: torch.device) -> None:
    results = []
    for device in ("cpu", xpu):
        with torch.device(device), xpurt.kernel_policy("sycl"):
            p, grad = torch.arange(4.0), torch.tensor([2.0, 4.0, -8.0, 1.0])
            mean, square, step = torch.zeros(4), torch.zeros(4), torch.tensor(1.0)
            torch._fused_adam_(
                [p], [grad], [mean], [square], [], [step],
                lr=0.1, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8,
                amsgrad=False, maximize=False,
                grad_scale=torch.tensor(4.0), found_inf=torch.tensor(found),
            )  # fmt: skip
            results.append([t.cpu() for t in (p, grad, mean, square)])
    torch.testing.assert_close(results[1], results[0])
