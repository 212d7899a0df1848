"""Device maps of accelerate and transformers: parts of a model on xpu, others on the CPU
or on disk until they are needed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import xpurt
from programs.test_transformers import TOKENS, llama

accelerate = pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")


class Layers(nn.Module):
    """Three layers of 64 numbers, which a map can put on different devices."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)
        self.second = nn.Linear(64, 64)
        self.last = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.second(self.norm(self.first(x)).relu()).relu())
        return y


X = torch.rand(4, 64, generator=torch.Generator().manual_seed(0))


def places_of(model: nn.Module) -> list[torch.device]:
    """Where the layers see their input, in the order of their calls."""
    seen: list[torch.device] = []
    for each in model.modules():
        if isinstance(each, nn.Linear):
            before = each.forward
            # accelerate's hooks replace `forward`, and move its input outside of this.
            each.forward = lambda x, before=before: (seen.append(x.device), before(x))[  # type: ignore[method-assign, misc]
                1
            ]
    return seen


def mapped(xpu: torch.device, rest: str) -> dict[str, Any]:
    return {"first": xpu, "norm": xpu, "second": rest, "last": xpu}


@pytest.mark.parametrize("rest", ["xpu:0", "cpu", "disk"])
def test_a_layer_waits_elsewhere(rest: str, xpu: torch.device, tmp_path: Path) -> None:
    expected = Layers()(X)
    model = Layers()
    seen = places_of(model)
    dispatched = accelerate.dispatch_model(
        model, mapped(xpu, rest), main_device=xpu, offload_dir=str(tmp_path)
    )
    with torch.no_grad():
        found = dispatched(X)
    assert seen == [xpu] * 3
    waits = dispatched.second.weight.device.type
    assert waits == ("xpu" if rest == "xpu:0" else "meta")
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    accelerate.hooks.remove_hook_from_submodules(dispatched)


def test_cpu_offload(xpu: torch.device) -> None:
    expected = Layers()(X)
    model = accelerate.cpu_offload(Layers(), execution_device=xpu)
    with torch.no_grad():
        found = model(X)
    assert found.device.type == "cpu" or found.device == xpu
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    accelerate.hooks.remove_hook_from_submodules(model)


def test_the_memory_of_xpu_is_known(xpu: torch.device) -> None:
    found = accelerate.utils.get_max_memory()
    assert found[0] == pytest.approx(torch.xpu.mem_get_info(0)[0], rel=0.2)
    assert found["cpu"] > 0


def test_an_automatic_map_takes_xpu_first(xpu: torch.device) -> None:
    layer = 64 * 64 * 4  # bytes, less its bias
    every = accelerate.infer_auto_device_map(Layers())
    assert set(every.values()) == {0}
    small = accelerate.infer_auto_device_map(
        Layers(), max_memory={0: int(2.05 * layer), "cpu": 2**30}
    )
    assert small["first"] == 0
    assert small["last"] == "cpu"


def saved(folder: Path) -> Any:
    torch.manual_seed(0)
    model, _ = llama()
    model.eval().save_pretrained(folder)
    return model


@pytest.mark.parametrize("device_map", ["xpu", "auto", {"": "xpu:0"}], ids=str)
def test_a_saved_model_is_loaded_to_xpu(
    device_map: Any, xpu: torch.device, tmp_path: Path
) -> None:
    expected = saved(tmp_path)(TOKENS).logits
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, device_map=device_map
    )
    places = {each.device for each in model.parameters()}
    ordinals = {torch.device("xpu", i) for i in range(torch.xpu.device_count())}
    # "auto" spreads the layers over all.
    assert places <= (ordinals if device_map == "auto" else {xpu})
    with torch.no_grad():
        found = model(TOKENS.to(xpu)).logits
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_a_saved_model_is_loaded_in_two_places(
    xpu: torch.device, tmp_path: Path
) -> None:
    expected = saved(tmp_path)(TOKENS).logits
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path,
        device_map={
            "model.embed_tokens": "xpu:0",
            "model.layers.0": "xpu:0",
            "model.layers.1": "cpu",
            "model.norm": "xpu:0",
            "model.rotary_emb": "xpu:0",
            "lm_head": "xpu:0",
        },
    )
    with torch.no_grad():
        found = model(TOKENS.to(xpu)).logits
    assert found.device == xpu
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    ids = model.generate(TOKENS.to(xpu), max_new_tokens=3, do_sample=False)
    assert ids.shape == (2, TOKENS.shape[1] + 3)
    accelerate.hooks.remove_hook_from_submodules(model)


def test_parts_on_two_ordinals(xpu: torch.device) -> None:
    if xpurt.get_xpu_mapping() != "explicit" or torch.xpu.device_count() < 2:
        pytest.skip("the mapping has one ordinal")
    expected = Layers()(X)
    model = Layers()
    seen = places_of(model)
    dispatched = accelerate.dispatch_model(model, mapped(xpu, "xpu:1"))
    with torch.no_grad():
        found = dispatched(X)
    assert [each.index for each in seen] == [0, 1, 0]
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    accelerate.hooks.remove_hook_from_submodules(dispatched)
