"""The configuration of a model, as transformers reads it from a GGUF file."""

import struct
import tempfile
from pathlib import Path
from typing import Any

from xpurt.language.file import GGUFFile
from xpurt.startup.extras import needs

_STRING, _ARRAY = 8, 9


def configuration_of(file: GGUFFile) -> Any:
    """transformers reads a file with the same metadata and names of tensors, and with a
    vocabulary of two tokens: of a whole one it makes objects, which takes seconds.

    Raises ValueError for metadata that transformers passes over, and MissingExtra without
    the extra `language`.
    """
    _check(file)
    transformers = needs("transformers", "load_gguf()", extra="language")
    with tempfile.TemporaryDirectory(prefix="xpurt") as folder:
        name = "metadata.gguf"
        Path(folder, name).write_bytes(_short_file(file))
        config = transformers.AutoConfig.from_pretrained(folder, gguf_file=name)
    config.name_or_path = str(file.path.absolute().parent)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is not None:
        config.vocab_size = embedding.shape[0]
    _set_rotary_base(file, config)
    return config


# Layers of Gemma 27B, whose attention has another scale: llama.cpp knows it by them.
_OTHER_SCALE = {"gemma2": 46, "gemma3": 62}


def _check(file: GGUFFile) -> None:
    """Refuses models of which transformers would compute something else."""
    scaling = file.value("rope.scaling.type", "none")
    if scaling != "none" or file.value("rope.scale_linear", 1.0) != 1:
        raise _other_model(file, f"rotary embeddings with the scaling {scaling}")
    width = file.value("attention.key_length") or (
        file.value("embedding_length", 0) // file.value("attention.head_count", 1)
    )
    rotated = file.value("rope.dimension_count", width)
    if rotated != width:
        raise _other_model(file, f"rotary embeddings of {rotated} of {width} values")
    if file.value("block_count") == _OTHER_SCALE.get(file.architecture):
        raise _other_model(file, "the attention of Gemma 27B")


def _other_model(file: GGUFFile, what: str) -> ValueError:
    return ValueError(
        f"{file.path} has {what}, which transformers does not read from a GGUF file. "
        "Load the model from its original folder, by from_pretrained()."
    )


def _set_rotary_base(file: GGUFFile, config: Any) -> None:
    """For each architecture: transformers leaves some at its default."""
    base = file.value("rope.freq_base")
    parameters = config.rope_parameters
    if base is not None and isinstance(parameters, dict):
        # Gemma 3 has others for sliding windows.
        parameters.get("full_attention", parameters)["rope_theta"] = base


def _short_file(file: GGUFFile) -> bytes:
    """Its tensors have one value each, all the same one."""
    tokens = _string("tokenizer.ggml.tokens") + struct.pack("<IIQ", _ARRAY, _STRING, 2)
    entries = [*file.entries, tokens + _string("") + _string("")]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(file.tensors), len(entries))
    head += b"".join(entries)
    for name in file.tensors:
        head += _string(name) + struct.pack("<IQIQ", 1, 1, 0, 0)
    alignment = 1 << 16  # more than any file has
    return head + bytes(alignment + 4)


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
