"""RMS norms and SwiGLU, written as the libraries write them, and what only looks like them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_types import need_bf16
from pattern_cases import SIZE, assert_left_as_it_is, fused, model_of, tokens, values
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt

pytestmark = pytest.mark.usefixtures("in_optimized_form")


class LlamaNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(SIZE) + 0.5)
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states: Tensor) -> Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class ShortNorm(LlamaNorm):
    """As the first Llama."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.float()
        scale = torch.rsqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-5)
        return x * scale * self.weight


class TypedNorm(LlamaNorm):
    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)
        return y.type_as(x) * self.weight


class Silu(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input)


class GatedLayers(nn.Module):
    def __init__(self, bias: tuple[bool, bool] = (False, False)) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(SIZE, 24, bias=bias[0])
        self.up_proj = nn.Linear(SIZE, 24, bias=bias[1])
        self.down_proj = nn.Linear(24, SIZE)
        self.act_fn: nn.Module = Silu()

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return made


class GatedByFunction(GatedLayers):
    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.up_proj(x) * F.silu(self.gate_proj(x))
        return made


@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [LlamaNorm, ShortNorm, TypedNorm])
def test_rms_norm(
    device: str,
    kind: Callable[[], nn.Module],
    dtype: torch.dtype,
    weight_dtype: torch.dtype,
    called: list[str],
) -> None:
    model, x = model_of(kind, device).to(weight_dtype), tokens(device, dtype)
    made = xpurt.optimize(model)
    found = values(made, x)
    assert fused(made) == ["RMS norm"]
    assert called == ["rms_norm"]
    near = 1e-5 if dtype == weight_dtype == torch.float32 else 2e-2
    assert_close(found, values(model, x), rtol=near, atol=near)


def test_a_norm_whose_weight_has_other_sizes(device: str) -> None:
    model = model_of(LlamaNorm, device)
    model.weight = nn.Parameter(torch.rand(1, device=device))
    x = tokens(device)
    assert_close(values(xpurt.optimize(model), x), values(model, x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("kind", [GatedLayers, GatedByFunction])
@pytest.mark.parametrize("count", [1, 6])
def test_swiglu(
    device: str,
    kind: Any,
    bias: tuple[bool, bool],
    dtype: torch.dtype,
    count: int,
    called: list[str],
) -> None:
    model = model_of(lambda: kind(bias), device).to(dtype)
    made, x = xpurt.optimize(model), tokens(device, dtype, count)[:1]
    near = 1e-5 if dtype == torch.float32 else 2e-2
    assert_close(values(made, x), values(model, x), rtol=near, atol=near)
    assert fused(made) == ["SwiGLU"]
    assert called == (["joined_linear"] if device == "xpu" else [])
    with torch.no_grad():
        for each in (made, model):
            each.up_proj.weight.mul_(2)  # type: ignore[union-attr, operator]
    assert_close(values(made, x), values(model, x), rtol=near, atol=near)


def test_a_hook_of_a_gate_is_called(device: str) -> None:
    model, x = model_of(GatedLayers, device), tokens(device)
    made, seen = xpurt.optimize(model), []
    for name in ("gate_proj", "up_proj", "act_fn"):
        handle = made.get_submodule(name).register_forward_hook(
            lambda *_, name=name: seen.append(name)
        )
        assert_close(values(made, x), values(model, x), rtol=1e-5, atol=1e-5)
        handle.remove()
    assert seen == ["gate_proj", "up_proj", "act_fn"]


class NormOfOther(LlamaNorm):
    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt((x + 1).pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class NormAlongTokens(LlamaNorm):
    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class CubicNorm(LlamaNorm):
    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class ScaleReturned(LlamaNorm):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale), scale


class RoundedNorm(LlamaNorm):
    """Cast to a type that is not that of the values."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(torch.bfloat16)


class GateOfOther(GatedLayers):
    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = F.silu(self.gate_proj(x)) * self.up_proj(x + 1)
        return made


class GateRead(GatedLayers):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gate = self.gate_proj(x)
        return F.silu(gate) * self.up_proj(x), gate


class GateByGelu(GatedLayers):
    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = F.gelu(self.gate_proj(x)) * self.up_proj(x)
        return made


@pytest.mark.parametrize(
    "kind",
    [
        NormOfOther,
        NormAlongTokens,
        CubicNorm,
        ScaleReturned,
        RoundedNorm,
        GateOfOther,
        GateRead,
        GateByGelu,
    ],
)
def test_what_only_looks_like_it(device: str, kind: Callable[[], nn.Module]) -> None:
    assert_left_as_it_is(kind, device)


@pytest.mark.parametrize("kind", [LlamaNorm, GatedLayers])
def test_under_autocast(device: str, kind: Callable[[], nn.Module]) -> None:
    need_bf16(device)
    model, x = model_of(kind, device), tokens(device)
    made = xpurt.optimize(model, dtype=torch.bfloat16, sample_input=x)
    assert fused(made)
    with torch.autocast(device, dtype=torch.bfloat16):
        expected = values(model, x)
    found = values(made, x)
    assert found.dtype == expected.dtype
    assert_close(found, expected, rtol=3e-2, atol=3e-2)
    copied = copy.deepcopy(made)
    assert torch.equal(values(copied, x), found)


def test_an_optional_argument_that_is_absent(device: str) -> None:
    """There is a graph for calls without it, and one for calls with it."""

    class Optional(GatedLayers):
        def forward(self, x: Tensor, added: Tensor | None = None) -> Tensor:
            y: Tensor = self.act_fn(self.gate_proj(x)) * self.up_proj(x)
            return y if added is None else y + added

    model, x = model_of(Optional, device), tokens(device)
    made = xpurt.optimize(model)
    more = torch.ones(24, device=device)
    for args in ((x,), (x, more)):
        assert_close(values(made, *args), values(model, *args), rtol=1e-5, atol=1e-5)
    assert fused(made) == ["SwiGLU"]
