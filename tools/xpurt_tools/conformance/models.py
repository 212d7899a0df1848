"""Small models of other packages by their configurations: random weights, no download.

They are a database of their own: `--models`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import torch
from torch import nn

from xpurt.startup.extras import needs
from xpurt_tools.conformance.check_module import Made
from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.spread import spread

# The side of the images, in pixels.
TIMM: Final = {
    "resnet18": 32,
    "resnext26ts": 32,
    "seresnet18": 32,
    "convnext_atto": 32,
    "mobilenetv3_small_050": 32,
    "mobilenetv2_035": 32,
    "efficientnet_lite0": 32,
    "ghostnet_050": 32,
    "regnetx_002": 32,
    "repvgg_a0": 32,
    "hardcorenas_a": 32,
    "lcnet_035": 32,
    "tinynet_e": 32,
    "dla46_c": 32,
    "vovnet39a": 32,
}
# These take the side as an argument.
TIMM_SIZED: Final[dict[str, dict[str, Any]]] = {
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "deit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "swin_tiny_patch4_window7_224": {
        "img_size": 56,
        "depths": (1, 1),
        "num_heads": (2, 4),
        "embed_dim": 32,
    },
}
TORCHVISION: Final = {
    "alexnet": 64,
    "resnet34": 32,
    "squeezenet1_1": 32,
    "shufflenet_v2_x0_5": 32,
    "mnasnet0_5": 32,
    "mobilenet_v3_small": 32,
}

_ENCODER: Final = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
_DECODER: Final = {**_ENCODER, "num_key_value_heads": 2}
_GPT: Final = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4}
_PLAIN: Final = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
# The stem of the classes, and the numbers of the configuration.
TRANSFORMERS: Final[dict[str, dict[str, Any]]] = {
    "Bert": {**_ENCODER, **_PLAIN},
    "Roberta": {**_ENCODER, **_PLAIN},
    "Electra": {**_ENCODER, **_PLAIN, "embedding_size": 32},
    "Albert": {**_ENCODER, **_PLAIN, "embedding_size": 16},
    "MPNet": {**_ENCODER, **_PLAIN},
    "ModernBert": {**_ENCODER, "pad_token_id": 0},
    "DistilBert": {
        "vocab_size": 100,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 64,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
    "GPT2": {**_GPT, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    "GPTNeoX": _ENCODER,
    "Llama": _DECODER,
    "Mistral": _DECODER,
    "Qwen2": _DECODER,
    "Qwen3": {**_DECODER, "head_dim": 8},
    "Gemma": {**_DECODER, "head_dim": 8},
    "Phi": _ENCODER,
    "Cohere": {**_DECODER, "pad_token_id": 0},
    "Bloom": {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4},
}

Build = Callable[[], tuple[nn.Module, tuple[Any, ...]]]


def of_packages() -> list[Entry]:
    """An entry for each model. Raises MissingExtra if a package is missing."""
    what = "conformance --models"
    timm, torchvision, transformers = (
        needs(name, what, extra="programs")
        for name in ("timm", "torchvision.models", "transformers")
    )
    found: dict[str, Build] = {}
    for name, side in TIMM.items():
        made = partial(timm.create_model, name, num_classes=7)
        found[f"timm.{name}"] = partial(_of_images, made, side)
    for name, given in TIMM_SIZED.items():
        made = partial(timm.create_model, name, num_classes=7, **given)
        found[f"timm.{name}"] = partial(_of_images, made, given["img_size"])
    for name, side in TORCHVISION.items():
        made = partial(torchvision.get_model, name, weights=None, num_classes=7)
        found[f"torchvision.{name}"] = partial(_of_images, made, side)
    for name, given in TRANSFORMERS.items():
        made = partial(_of_configuration, transformers, name, given)
        found[f"transformers.{name}"] = partial(_of_words, made)
    dtypes = frozenset({torch.float32, torch.bfloat16})
    return [
        Entry("model", name, "models", build, dtypes) for name, build in found.items()
    ]


def _of_images(made: Callable[[], Any], side: int) -> tuple[nn.Module, tuple[Any, ...]]:
    model: nn.Module = made()
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d) and each.running_mean is not None:
            assert each.running_var is not None  # as after some training
            each.running_mean.normal_(0, 0.1)
            each.running_var.uniform_(0.8, 1.2)
    return model, (torch.rand(2, 3, side, side),)


def _of_configuration(transformers: Any, name: str, given: dict[str, Any]) -> Any:
    configuration = getattr(transformers, f"{name}Config")(
        **given,
        return_dict=False,
        use_cache=False,  # an object, whose tensors nothing here would see
    )
    return getattr(transformers, f"{name}Model")(configuration)


def _of_words(made: Callable[[], Any]) -> tuple[nn.Module, tuple[Any, ...]]:
    return made(), (torch.randint(5, 100, (2, 12)),)


def made_models(
    entry: Entry,
    dtype: torch.dtype,
    most_samples: int | None,
    modes: tuple[bool, ...],
) -> Iterator[tuple[int, Made]]:
    """The model with its input, in training (True) and in evaluation."""
    for index, training in spread(modes, most_samples):
        torch.manual_seed(0)
        model, args = entry.info()
        args = tuple(x.to(dtype) if x.is_floating_point() else x for x in args)
        yield index, (model.to(dtype).train(training), args, {})
