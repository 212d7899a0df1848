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

    Raises MissingExtra without the extra `language`.
    """
    transformers = needs("transformers", "load_gguf()", extra="language")
    with tempfile.TemporaryDirectory(prefix="xpurt") as folder:
        name = "metadata.gguf"
        Path(folder, name).write_bytes(_short_file(file))
        config = transformers.AutoConfig.from_pretrained(folder, gguf_file=name)
    config.name_or_path = str(file.path.absolute().parent)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is not None:
        config.vocab_size = embedding.shape[0]
    return config


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
