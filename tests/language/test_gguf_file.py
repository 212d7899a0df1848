"""GGUF files: what is read of them, and what is refused."""

import struct
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_bytes import ALIGNMENT, Written, gguf_bytes

import xpurt
from xpurt.language.architectures import ARCHITECTURES, rows_in_halves
from xpurt.language.block_types import BLOCK_TYPES
from xpurt.language.configuration import configuration_of
from xpurt.language.file import read

METADATA = {
    "general.architecture": "llama",
    "tokenizer.ggml.tokens": ["a", "b", "ä"],
    "llama.block_count": 2,
}
FLOATS = torch.arange(12, dtype=torch.float32).reshape(3, 4)
BLOCKS = bytes(range(200)) * 2
PADDING = -len(BLOCKS) % ALIGNMENT  # at the end of the file


def tensors() -> list[Written]:
    half, brain = FLOATS.half(), FLOATS.bfloat16().view(torch.int16)
    return [
        Written("floats", (3, 4), 0, FLOATS.numpy().tobytes()),
        Written("halves", (3, 4), 1, half.numpy().tobytes()),
        Written("brain", (3, 4), 30, brain.numpy().tobytes()),
        Written("blocks", (5, 128), 3, BLOCKS),
    ]


def written(folder: Path, content: bytes | None = None) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(gguf_bytes(METADATA, tensors()) if content is None else content)
    return path


def test_tensors_are_the_bytes_of_the_file(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file = read(written(tmp_path))
    assert file.architecture == "llama"
    found = file.tensors
    assert found["floats"].data.equal(FLOATS)
    assert found["halves"].data.equal(FLOATS.half())
    assert found["brain"].data.equal(FLOATS.bfloat16())
    blocks = found["blocks"]
    assert blocks.shape == (5, 128)
    assert blocks.block_type is BLOCK_TYPES[3]
    assert blocks.data.equal(torch.tensor(list(BLOCKS), dtype=torch.uint8).view(5, 80))


def test_a_write_does_not_reach_the_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_bytes()
    read(path).tensors["floats"].data.fill_(7)
    assert path.read_bytes() == before
    assert read(path).tensors["floats"].data.equal(FLOATS)


def test_a_file_that_ends_early_is_refused(tmp_path: Path) -> None:
    """At each byte: in the header, in its tables, and within each tensor."""
    whole = gguf_bytes(METADATA, tensors())
    for end in range(4, len(whole) - PADDING):
        with pytest.raises(ValueError, match="wants a whole GGUF file"):
            read(written(tmp_path, whole[:end]))
    read(written(tmp_path, whole))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", 'which begins with "GGUF"'),
        (b"PK\3\4" + bytes(100), 'which begins with "GGUF"'),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version 50331648"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (gguf_bytes({"x": "y"}, []), "has no general.architecture"),
        (gguf_bytes({"general.architecture": 3}, []), "has no general.architecture"),
        (
            gguf_bytes(METADATA, [Written("w", (2, 33), 3, bytes(99))]),
            "rows of 33 values in Q4_1, of w",
        ),
        (
            gguf_bytes(METADATA, [Written("w", (), 0, bytes(4))]),
            r"w has the shape \(\)",
        ),
    ],
    ids=["empty", "zip", "big-endian", "old", "key", "number", "row", "shape"],
)
def test_what_is_no_whole_file_is_refused(
    content: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        xpurt.load_gguf(written(tmp_path, content))


@pytest.mark.parametrize(("number", "name"), [(10, "Q2_K"), (23, "IQ4_XS"), (99, "99")])
def test_a_type_that_is_unknown_is_named(
    number: int, name: str, tmp_path: Path
) -> None:
    content = gguf_bytes(METADATA, [Written("blk.0.w", (2, 256), number, bytes(999))])
    with pytest.raises(ValueError, match=f"blk.0.w of .* is {name}; .*llama-quantize"):
        xpurt.load_gguf(written(tmp_path, content))


@pytest.mark.parametrize("name", ["gpt2", "qwen3moe", "mamba", "t5", "bloom"])
def test_an_architecture_that_is_unknown_is_named(name: str, tmp_path: Path) -> None:
    content = gguf_bytes({"general.architecture": name}, [])
    with pytest.raises(ValueError, match=f'is "{name}". .*from_pretrained') as error:
        xpurt.load_gguf(written(tmp_path, content))
    assert all(known in str(error.value) for known in ARCHITECTURES)


@pytest.mark.parametrize(
    ("architecture", "metadata", "said"),
    [
        ("llama", {"rope.scaling.type": "linear"}, "the scaling linear"),
        ("qwen2", {"rope.scaling.type": "yarn"}, "the scaling yarn"),
        (
            "phi3",
            {
                "embedding_length": 512,
                "attention.head_count": 4,
                "rope.dimension_count": 96,
            },
            "rotary embeddings of 96 of 128 values",
        ),
        (
            "qwen3",
            {"attention.key_length": 128, "rope.dimension_count": 64},
            "rotary embeddings of 64 of 128 values",
        ),
        ("gemma2", {"block_count": 46}, "the attention of Gemma 27B"),
        ("gemma3", {"block_count": 62}, "the attention of Gemma 27B"),
    ],
)
def test_what_transformers_would_pass_over_is_refused(
    architecture: str, metadata: dict[str, object], said: str, tmp_path: Path
) -> None:
    own = {f"{architecture}.{key}": value for key, value in metadata.items()}
    content = gguf_bytes({"general.architecture": architecture, **own}, tensors())
    file = read(written(tmp_path, content))
    with pytest.raises(ValueError, match=f"{said}, which transformers does not read"):
        configuration_of(file)


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "xpurt\[language\]"'):
        xpurt.load_gguf(written(tmp_path))


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("width", [(), (5,)], ids=["bias", "rows"])
def test_rows_are_in_the_order_of_transformers(heads: int, width: Any) -> None:
    """By the loop that the order is defined by: row 2i of a head becomes i, and row
    2i + 1 becomes i + size / 2."""
    rows = torch.randint(256, (48, *width), dtype=torch.uint8)
    size = 48 // heads
    expected = torch.empty_like(rows)
    for head in range(heads):
        for i in range(size // 2):
            begin = head * size
            expected[begin + i] = rows[begin + 2 * i]
            expected[begin + i + size // 2] = rows[begin + 2 * i + 1]
    assert rows_in_halves(rows, heads).equal(expected)
