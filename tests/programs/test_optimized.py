"""Models of timm and transformers for inference, before and after `xpurt.optimize`."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from cpu_types import has_bf16
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils import _pytree as pytree

import xpurt
from programs.optimized_models import NAMES, made
from xpurt.optimization.requested_form import optimized as in_optimized_form

# A part of some models, and what was done to it.
FUSED = {
    "bert": {
        "encoder.layer.1.intermediate.dense": "linear layer + gelu",
    },
    "llama": {
        "model.layers.1.mlp.gate_proj": "SwiGLU",
        "model.layers.0.input_layernorm": "RMS norm",
        "model.norm": "RMS norm",
    },
    "vit_tiny_patch16_224": {"blocks.3.mlp.fc1": "linear layer + gelu"},
}


def values(model: nn.Module, sample: Any) -> list[Tensor]:
    """Of the optimized form, if the model is one, also where that takes longer."""
    with torch.no_grad(), in_optimized_form():
        if isinstance(sample, dict):
            result = model(**sample, use_cache=False, return_dict=True)
            return [result[0]]
        return list(pytree.tree_leaves(model(*sample)))


@pytest.mark.parametrize("kind", ["cpu", "xpu"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, kind: str) -> None:
    model, sample = made(name)
    model, sample = model.to(kind), pytree.tree_map(lambda x: x.to(kind), sample)
    expected = values(model, sample)
    optimized: Any = xpurt.optimize(model, sample_input=sample)
    report = optimized.report
    # The layers of GPT-2 are of a class of its own.
    assert bool(report.done) == (name != "gpt2")
    for part, what in FUSED.get(name, {}).items():
        assert (part, f"fused: {what}") in report.done
    assert not any("differed" in why for _, why in report.left)
    for one, other in zip(expected, values(optimized, sample), strict=True):
        assert_close(other, one, rtol=1e-3, atol=1e-3 * float(one.abs().max()))
    if kind == "cpu" and not has_bf16():
        return
    with torch.autocast(kind, dtype=torch.bfloat16):
        expected = values(model, sample)
    lower = xpurt.optimize(model, dtype=torch.bfloat16, sample_input=sample)
    for one, other in zip(expected, values(lower, sample), strict=True):
        assert other.dtype == one.dtype
        far = (other.float() - one.float()).norm() / one.float().norm()
        assert float(far) < 5e-2


def is_near(found: list[Tensor], expected: list[Tensor]) -> bool:
    """Whether values differ by rounding."""
    return all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
        for one, other in zip(found, expected, strict=True)
    )


def change(model: nn.Module) -> None:
    """Gives all parameters other values."""
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(0.9).add_(0.001)


@pytest.mark.parametrize("name", NAMES)
def test_state_is_loaded_both_ways(name: str) -> None:
    model, sample = made(name)
    optimized = xpurt.optimize(model)
    assert type(optimized).__name__ == type(model).__name__
    before = values(optimized, sample)  # weights are packed
    change(model)
    optimized.load_state_dict(model.state_dict())
    found = values(optimized, sample)
    assert is_near(found, values(model, sample))
    assert not is_near(found, before)
    change(optimized)
    saved = io.BytesIO()
    torch.save(optimized.state_dict(), saved)
    saved.seek(0)
    model.load_state_dict(torch.load(saved))
    assert is_near(values(optimized, sample), values(model, sample))


@pytest.mark.parametrize("name", NAMES)
def test_hooks_see_each_module(name: str) -> None:
    model, sample = made(name)
    optimized = xpurt.optimize(model)
    expected = values(model, sample)

    def calls_of(model: nn.Module) -> list[str]:
        names = {each: name for name, each in model.named_modules()}
        seen: list[str] = []
        handles = [
            each.register_forward_hook(lambda module, *_: seen.append(names[module]))
            for each in names
        ]
        assert is_near(values(model, sample), expected)
        for handle in handles:
            handle.remove()
        return seen

    assert calls_of(optimized) == calls_of(model)
    assert is_near(values(optimized, sample), expected)


@pytest.mark.parametrize("copied", ["deepcopy", "pickle"])
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_is_optimized(name: str, copied: str) -> None:
    model, sample = made(name)
    optimized = xpurt.optimize(model)
    expected = values(optimized, sample)
    if copied == "deepcopy":
        other = copy.deepcopy(optimized)
    else:
        other = pickle.loads(pickle.dumps(optimized))
    assert [type(each) for each in other.modules()] == [
        type(each) for each in optimized.modules()
    ]
    assert all(map(torch.equal, values(other, sample), expected))
    change(other)
    assert not is_near(values(other, sample), expected)
    assert all(map(torch.equal, values(optimized, sample), expected))
