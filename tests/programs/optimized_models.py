"""Small models of timm and transformers, with random weights and a batch each."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from kernels.model_zoo import ENCODER
from torch import nn

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
