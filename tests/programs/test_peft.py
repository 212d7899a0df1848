"""Adapters of peft on small models of transformers."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from programs.test_transformers import TOKENS, llama, loss
from programs.training_steps import check

peft = pytest.importorskip("peft")

LAYERS = ["q_proj", "v_proj"]
ADAPTERS = {
    "lora": lambda: peft.LoraConfig(
        r=4, target_modules=LAYERS, init_lora_weights=False
    ),
    "dora": lambda: peft.LoraConfig(r=4, target_modules=LAYERS, use_dora=True),
    "loha": lambda: peft.LoHaConfig(r=2, target_modules=LAYERS, init_weights=False),
    "ia3": lambda: peft.IA3Config(
        target_modules=[*LAYERS, "down_proj"], feedforward_modules=["down_proj"]
    ),
    "vera": lambda: peft.VeraConfig(r=4, target_modules=["q_proj"]),
    "prefix": lambda: peft.PrefixTuningConfig(
        num_virtual_tokens=3, task_type="CAUSAL_LM"
    ),
}


def adapted(name: str) -> Any:
    torch.manual_seed(0)
    model, _ = llama()
    return peft.get_peft_model(model, ADAPTERS[name]())


@pytest.mark.parametrize("name", ADAPTERS)
def test_training(name: str, xpu: torch.device) -> None:
    check(adapted(name), {"input_ids": TOKENS, "labels": TOKENS}, loss, xpu)


@pytest.mark.parametrize("name", ["lora", "loha"])
def test_adapters_are_merged_saved_and_loaded(
    name: str, xpu: torch.device, tmp_path: Path
) -> None:
    model = adapted(name).eval()
    with torch.no_grad():
        expected = model(input_ids=TOKENS).logits
        model = model.to(xpu)
        given = {"input_ids": TOKENS.to(xpu)}

        def same(model: Any) -> None:
            found = model(**given).logits
            assert found.device == xpu
            torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)

        same(model)
        with model.disable_adapter():
            plain = model(**given).logits.cpu()
        assert not torch.allclose(plain, expected, atol=1e-4)
        model.save_pretrained(tmp_path)
        base, _ = llama()
        base.load_state_dict(copy.deepcopy(model).unload().state_dict())
        # By peft's choice of a device, and by the base's.
        same(peft.PeftModel.from_pretrained(base.to(xpu), tmp_path).eval())
        same(model.merge_and_unload())
