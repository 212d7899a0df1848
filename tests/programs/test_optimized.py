"""Models of timm and transformers for inference, before and after `xpurt.optimize`."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from kernels.model_zoo import ENCODER
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils import _pytree as pytree

import xpurt

timm = pytest.importorskip("timm")
transformers = pytest.importorskip("transformers")

SMALL = {"vocab_size": 100, **ENCODER}
LLAMA = {
    "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}

IMAGE_MODELS = {
    "resnet18": 64,
    "resnet50": 64,
    "convnext_atto": 64,
    "mobilenetv3_small_050": 64,
    "efficientnet_b0": 64,
    "vit_tiny_patch16_224": 224,
    "densenet121": 64,
}
LANGUAGE_MODELS: dict[str, Callable[[], nn.Module]] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(**SMALL)),
    "distilbert": lambda: transformers.DistilBertModel(
        transformers.DistilBertConfig(
            vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64
        )
    ),
    "gpt2": lambda: transformers.GPT2Model(transformers.GPT2Config(**GPT2)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**SMALL)),
    "t5 encoder": lambda: transformers.T5EncoderModel(
        transformers.T5Config(
            vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4
        )
    ),
}
NAMES = [*IMAGE_MODELS, *LANGUAGE_MODELS]


def made(name: str) -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    if name in LANGUAGE_MODELS:
        tokens = torch.randint(5, 100, (2, 12))
        return LANGUAGE_MODELS[name]().eval(), {"input_ids": tokens}
    side = IMAGE_MODELS[name]
    model = timm.create_model(name, pretrained=False, num_classes=7)
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d):  # as after some training
            assert each.running_mean is not None
            assert each.running_var is not None
            each.running_mean.normal_(0, 0.1)
            each.running_var.uniform_(0.8, 1.2)
    return model.eval(), (torch.rand(2, 3, side, side),)


def values(model: nn.Module, sample: Any) -> list[Tensor]:
    with torch.no_grad():
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
    if name == "gpt2":  # its layers are of a class of its own
        assert (
            "h.0.mlp.c_fc",
            "Conv1D is no layer that a primitive has",
        ) in report.left
    else:
        assert report.done
    assert not any("differed" in why for _, why in report.left)
    for one, other in zip(expected, values(optimized, sample), strict=True):
        assert_close(other, one, rtol=1e-3, atol=1e-3 * float(one.abs().max()))
    with torch.autocast(kind, dtype=torch.bfloat16):
        expected = values(model, sample)
    lower = xpurt.optimize(model, dtype=torch.bfloat16, sample_input=sample)
    for one, other in zip(expected, values(lower, sample), strict=True):
        assert other.dtype == one.dtype
        far = (other.float() - one.float()).norm() / one.float().norm()
        assert float(far) < 5e-2


@pytest.mark.parametrize("name", NAMES)
def test_it_stays_a_model(name: str) -> None:
    model, sample = made(name)
    optimized = xpurt.optimize(model)
    assert type(optimized).__name__ == type(model).__name__
    expected = values(optimized, sample)
    saved = io.BytesIO()
    torch.save(optimized.state_dict(), saved)
    saved.seek(0)
    model.load_state_dict(torch.load(saved))
    optimized.load_state_dict(model.state_dict())
    seen: list[nn.Module] = []
    handles = [
        each.register_forward_hook(lambda module, *_: seen.append(module))
        for each in optimized.modules()
    ]
    values(optimized, sample)
    calls = len(seen)
    for each in handles:
        each.remove()
    plain: list[nn.Module] = []
    for module in model.modules():
        module.register_forward_hook(lambda module, *_: plain.append(module))
    values(model, sample)
    assert calls == len(plain)
    for other in (copy.deepcopy(optimized), pickle.loads(pickle.dumps(optimized))):
        assert all(map(torch.equal, values(other, sample), expected))
