"""PyTorch's transformations of functions: derive, batch, trace, export, compile."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

from xpurt.testing.oracle import agree


def energy(a: torch.Tensor) -> torch.Tensor:
    return (a.sin() * a).sum()


TRANSFORMED: dict[str, Callable[..., Any]] = {
    "grad": grad(energy),
    "hessian": hessian(energy),
    "jacrev": jacrev(torch.sin),
    "jacfwd": jacfwd(torch.sin),
    "jvp": lambda a: jvp(energy, (a,), (torch.ones_like(a),)),
    "vmap": lambda a: vmap(grad(energy))(torch.stack([a, 2 * a])),
    "vmap_of_mm": lambda a: vmap(torch.outer)(
        a.expand(3, -1).clone(), a.repeat(3, 1) + 1
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_func(name: str, xpu: torch.device) -> None:
    agree(TRANSFORMED[name], torch.randn(5), device=xpu, strides=False)


def test_a_model_as_a_function(xpu: torch.device) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))

    def loss(state: dict[str, torch.Tensor], batch: torch.Tensor) -> torch.Tensor:
        return functional_call(model, state, batch).square().mean()

    state = {name: p.detach() for name, p in model.named_parameters()}
    agree(vmap(grad(loss), (None, 0)), state, torch.randn(6, 2, 4), device=xpu)


def test_forward_mode(xpu: torch.device) -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.zeros(3, device=xpu), torch.ones(3).to(xpu))
        tangent = forward_ad.unpack_dual(dual.exp()).tangent
    assert tangent.device == xpu
    assert tangent.tolist() == [1, 1, 1]


def test_gradients_are_those_of_differences(xpu: torch.device) -> None:
    x = torch.rand(3, 2, dtype=torch.float64, device=xpu, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: (a @ a.t()).logsumexp(0), (x,))
    assert torch.autograd.gradgradcheck(lambda a: a.tanh().cumsum(0), (x,))


def test_a_custom_op(xpu: torch.device) -> None:
    @torch.library.custom_op("test_xpurt::twice", mutates_args=())
    def twice(a: torch.Tensor) -> torch.Tensor:
        return a * 2

    twice.register_fake(torch.empty_like)
    twice.register_autograd(lambda ctx, g: g * 2)
    x = torch.randn(3, device=xpu, requires_grad=True)
    torch.library.opcheck(twice, (x,))
    twice(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]


def test_kernels_on_the_keys_of_xpu(xpu: torch.device) -> None:
    with torch.library._scoped_library("test_xpurt_keys", "DEF") as library:
        library.define("next(Tensor a) -> Tensor")
        library.impl("next", lambda a: a + 1, "XPU")
        ops: Any = torch.ops.test_xpurt_keys

        class Next(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
                with torch._C._AutoDispatchBelowAutograd():
                    return ops.next(a)

            @staticmethod
            def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
                return g * 3

        library.impl("next", Next.apply, "AutogradXPU")
        x = torch.zeros(2, device=xpu, requires_grad=True)
        y = ops.next(x)
        y.sum().backward()
        assert x.grad is not None
        assert (y.tolist(), x.grad.tolist()) == ([1, 1], [3, 3])


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU())
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layers(x)
        found = self.attention(h, h, h, need_weights=False)[0] + h
        return found.relu_()


@pytest.fixture
def network(xpu: torch.device) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    network = Network().eval()
    x = torch.randn(2, 5, 4)
    expected = network(x).detach()
    return network.to(xpu), x.to(xpu), expected


Made = tuple[nn.Module, torch.Tensor, torch.Tensor]


def test_trace_and_script(network: Made, xpu: torch.device) -> None:
    model, x, _ = network
    for made in (torch.jit.trace(model.layers, x), torch.jit.script(model.layers)):
        file = io.BytesIO()
        torch.jit.save(made, file)
        file.seek(0)
        loaded = torch.jit.load(file, map_location=xpu)
        frozen = torch.jit.freeze(loaded.eval())
        for _ in range(4):  # the executor specializes in between
            torch.testing.assert_close(loaded(x), model.layers(x))
            torch.testing.assert_close(frozen(x), model.layers(x))


def test_export(network: Made) -> None:
    model, x, expected = network
    program = torch.export.export(model, (x,))
    torch.testing.assert_close(program.module()(x).cpu(), expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile(backend: str, network: Made) -> None:
    model, x, expected = network
    torch._dynamo.reset()
    compiled = torch.compile(model.train(), backend=backend, fullgraph=True)
    found = compiled(x)
    torch.testing.assert_close(found.detach().cpu(), expected)
    found.sum().backward()
    found_grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    model(x).sum().backward()
    expected_grads = [p.grad for p in model.parameters() if p.grad is not None]
    torch.testing.assert_close(found_grads, expected_grads)
