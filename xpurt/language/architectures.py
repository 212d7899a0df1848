"""Which architectures can be loaded, and how their tensors differ from transformers'.

llama.cpp's converter changes some tensors. Here is what undoes the change on whole rows,
so that blocks stay as they are. Source: llama.cpp's convert_hf_to_gguf.py, and the tensor
processors of transformers.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from xpurt.language.file import FileTensor, GGUFFile


@dataclass(frozen=True, slots=True)
class Architecture:
    """How the tensors of a file differ from those of the model.

    paired_rows: the rows of queries and keys of a head are in the order of llama.cpp's
        rotary embedding: the two that are rotated together are neighbours.
    norms_plus_one: weights of norms have 1 added.
    """

    paired_rows: bool = False
    norms_plus_one: bool = False


ARCHITECTURES = {
    "llama": Architecture(paired_rows=True),
    "qwen2": Architecture(),
    "qwen3": Architecture(),
    "phi3": Architecture(),
    "starcoder2": Architecture(),
    "gemma2": Architecture(norms_plus_one=True),
    "gemma3": Architecture(norms_plus_one=True),
}


def architecture_of(file: GGUFFile) -> Architecture:
    """Raises ValueError for an architecture that cannot be loaded."""
    found = ARCHITECTURES.get(file.architecture)
    if found is None:
        raise ValueError(
            f"load_gguf() has the architectures {', '.join(ARCHITECTURES)}; {file.path} "
            f'is "{file.architecture}". Load it in floating point, by transformers: '
            "AutoModelForCausalLM.from_pretrained(folder, gguf_file=name)."
        )
    return found


def as_in_model(found: FileTensor, architecture: Architecture, config: Any) -> Tensor:
    """The data of a tensor as transformers has it: mapped where nothing has to change."""
    if architecture.paired_rows:
        if ".attn_q." in found.name:
            return rows_in_halves(found.data, config.num_attention_heads)
        if ".attn_k." in found.name:
            return rows_in_halves(found.data, config.num_key_value_heads)
    if architecture.norms_plus_one and found.name.endswith("norm.weight"):
        return found.data - 1
    return found.data


def rows_in_halves(rows: Tensor, heads: int) -> Tensor:
    """The rows of each head as transformers has them: first the first ones of all pairs.
    A copy; rows are of bytes or of values."""
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape)


def scale_rotary_frequencies(model: torch.nn.Module, factors: Tensor) -> None:
    """Divides the frequencies of the rotary embeddings by the file's factors, those of
    Llama 3.1 for long contexts. transformers would take them from a config.json."""
    for module in model.modules():
        if isinstance(getattr(module, "inv_freq", None), Tensor):
            frequencies = module.inv_freq
            assert isinstance(frequencies, Tensor)
            frequencies.div_(factors.to(frequencies))
