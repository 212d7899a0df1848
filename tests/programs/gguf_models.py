"""Small language models, as GGUF files and as models of transformers with the same values.

The package gguf writes the files, and its values of blocks are the reference.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")

LAYERS = 2
VOCABULARY = 96
HEADS, KEY_HEADS = 4, 2
SIZE = 256  # of hidden states: a block of the K types

# Written as llama.cpp writes them: what it adds to the norms, and whose rows it reorders.
PLUS_ONE = ("gemma2", "gemma3")
PAIRED = ("llama",)

COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": SIZE,
    "intermediate_size": 2 * SIZE,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
ROTARY_BASE = 5000.0  # no model's default


def config_of(architecture: str, tied: bool) -> Any:
    classes = {
        "llama": transformers.LlamaConfig,
        "qwen2": transformers.Qwen2Config,
        "qwen3": transformers.Qwen3Config,
        "phi3": transformers.Phi3Config,
        "starcoder2": transformers.Starcoder2Config,
        "gemma2": transformers.Gemma2Config,
        "gemma3": transformers.Gemma3TextConfig,
    }
    # What the metadata of a file does not have is as transformers has it by default.
    more: dict[str, Any] = {}
    if architecture in ("gemma2", "gemma3"):
        more["head_dim"] = SIZE // HEADS
    rotary = {"rope_type": "default", "rope_theta": ROTARY_BASE}
    more["rope_parameters"] = rotary
    if architecture == "gemma3":
        sliding = {"rope_type": "default", "rope_theta": 10000.0}
        more["rope_parameters"] = {
            "full_attention": rotary,
            "sliding_attention": sliding,
        }
    return classes[architecture](**COMMON, **more, tie_word_embeddings=tied)


@dataclass(frozen=True)
class Made:
    """A file, and a model in float32 with the values of the file."""

    path: Path
    reference: Any


def made(
    folder: Path,
    block_type: str = "Q4_1",
    architecture: str = "llama",
    *,
    tied: bool = False,
    factors: torch.Tensor | None = None,
) -> Made:
    """block_type: of all matrices, in gguf's names; also F32, F16 and BF16.
    factors: divisors of the rotary frequencies."""
    torch.manual_seed(0)
    config = config_of(architecture, tied)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.eval().requires_grad_(False)
    path = folder / f"{architecture}-{block_type}.gguf"
    writer = _writer(path, architecture, config)
    numbers = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(numbers[architecture], LAYERS)
    for name, module in model.named_modules():
        if tied and name == "lm_head":
            continue
        for leaf, parameter in module.named_parameters(recurse=False):
            _randomize(parameter)
            file_name = f"{names.get_name(name)}.{leaf}"
            heads = 0
            if architecture in PAIRED:
                heads = {"q_proj": HEADS, "k_proj": KEY_HEADS}.get(name[-6:], 0)
            if parameter.dim() == 2:
                _write_matrix(writer, file_name, parameter, block_type, heads)
            else:
                plus = architecture in PLUS_ONE and file_name.endswith("norm.weight")
                value = in_pairs(parameter, heads) if heads else parameter
                writer.add_tensor(file_name, (value + plus).numpy())
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors.numpy())
        model.model.rotary_emb.inv_freq /= factors
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Made(path, model)


def _randomize(parameter: nn.Parameter) -> None:
    if parameter.dim() == 2:
        parameter.normal_(std=parameter.size(1) ** -0.5)
    else:
        parameter.add_(torch.randn_like(parameter) / 10)


def in_pairs(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """The order of rows that llama.cpp's convert_hf_to_gguf.py gives to q and k."""
    halves = rows.reshape(heads, 2, len(rows) // heads // 2, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)


def _write_matrix(
    writer: Any, name: str, weight: nn.Parameter, block_type: str, heads: int
) -> None:
    """Writes the matrix, and leaves in `weight` what the file has of it."""
    number = gguf.GGMLQuantizationType[block_type]
    if block_type == "F32":
        data = weight.detach().numpy()
    elif block_type in ("Q4_K", "Q5_K", "Q6_K"):
        data = random_blocks(block_type, *weight.shape)
    else:
        data = gguf.quants.quantize(weight.detach().numpy(), number)
    weight.copy_(torch.from_numpy(gguf.quants.dequantize(data, number)))
    rows = torch.from_numpy(data)
    rows = in_pairs(rows, heads) if heads else rows
    writer.add_tensor(name, rows.numpy(), raw_dtype=number)


# Bytes of a block, and where the float16 scales of one begin: of positive values, and of
# what is subtracted. The package gguf has no quantization for these.
_SCALES = {"Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}


def random_blocks(block_type: str, rows: int, columns: int) -> np.ndarray:
    """Rows of blocks with random contents, whose values have a size as of weights."""
    size, scales = _SCALES[block_type]
    generator = np.random.default_rng(0)
    blocks = generator.integers(0, 256, (rows * columns // 256, size), np.uint8)
    for at in scales:
        scale = generator.uniform(0.5, 1, len(blocks)) * 1e-4
        blocks[:, at : at + 2] = scale.astype(np.float16).view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def _writer(path: Path, architecture: str, config: Any) -> Any:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("small")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    size = getattr(config, "head_dim", None) or SIZE // HEADS
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(ROTARY_BASE)
    if architecture == "starcoder2":
        writer.add_layer_norm_eps(config.norm_epsilon)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    words = [f"w{number}" for number in range(VOCABULARY)]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_merges(["w 1", "w 2"])
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    writer.add_pad_token_id(config.pad_token_id)
    return writer
