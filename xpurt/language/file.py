"""A GGUF file, mapped into memory."""

import mmap
import os
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from xpurt.arguments import wrong_type
from xpurt.language.block_types import BLOCK_TYPES, OTHER_TYPES, BlockType
from xpurt.language.header import DamagedError, Header, TensorPlace

_FLOATING = {0: torch.float32, 1: torch.float16, 30: torch.bfloat16}
_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class FileTensor:
    """A tensor of the file.

    shape: of the values, with the rows first.
    data: the bytes of the file, not a copy: of this shape in floating point, or uint8
        with rows of blocks in the last dimension.
    block_type: None in floating point.
    """

    name: str
    shape: tuple[int, ...]
    data: Tensor
    block_type: BlockType | None


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """What a file has: its architecture, in GGUF's name, and its tensors by name.

    metadata: single values by key.
    entries: the bytes of all metadata, without the vocabulary.
    """

    path: Path
    architecture: str
    tensors: dict[str, FileTensor]
    metadata: dict[str, Any]
    entries: list[bytes]

    def value(self, key: str, default: Any = None) -> Any:
        """Of the key with the architecture before it."""
        return self.metadata.get(f"{self.architecture}.{key}", default)


def read(path: str | os.PathLike[str]) -> GGUFFile:
    """Maps the file: pages are read when a tensor is used. A write to a tensor copies its
    page, and never reaches the file.

    Raises TypeError, OSError and ValueError as `load_gguf` does.
    """
    if not isinstance(path, str | os.PathLike):
        raise wrong_type(
            "load_gguf()", "the path of a GGUF file", path, "Give a str or a Path."
        )
    found = Path(path)
    if found.is_dir():
        raise ValueError(
            f"load_gguf() wants a GGUF file; {found} is a folder. Name the file in it."
        )
    with found.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError(
                f'load_gguf() wants a GGUF file, which begins with "GGUF"; {found} does '
                "not. Give a .gguf file; other models are loaded by from_pretrained() of "
                "transformers."
            )
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    try:
        header = Header(mapped)
        tensors = {each.name: _tensor(mapped, each, found) for each in header.tensors}
    except DamagedError as error:
        raise ValueError(
            f"load_gguf() wants a whole GGUF file; {found} ends too early, or is damaged "
            f"({error}). Download it again."
        ) from None
    architecture = header.metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise ValueError(
            f"{found} has no general.architecture, which a language model has to have. "
            "Convert the model anew by llama.cpp's convert_hf_to_gguf.py."
        )
    return GGUFFile(found, architecture, tensors, header.metadata, header.entries)


def _tensor(mapped: mmap.mmap, place: TensorPlace, path: Path) -> FileTensor:
    if not prod(place.shape) or not place.shape:
        raise DamagedError(f"{place.name} has the shape {place.shape}")
    dtype = _FLOATING.get(place.type_number)
    block_type = BLOCK_TYPES.get(place.type_number)
    if dtype is not None:
        shape, item = place.shape, dtype
    elif block_type is not None:
        if place.shape[-1] % block_type.values:
            raise DamagedError(
                f"rows of {place.shape[-1]} values in {block_type.name}, of {place.name}"
            )
        shape = (*place.shape[:-1], block_type.row_bytes(place.shape[-1]))
        item = torch.uint8
    else:
        raise _unknown_type(place, path)
    count = prod(shape)
    if place.begin + count * item.itemsize > len(mapped):
        raise DamagedError(f"{place.name} is after the end")
    data = torch.frombuffer(mapped, dtype=item, count=count, offset=place.begin)
    return FileTensor(place.name, place.shape, data.view(shape), block_type)


def _unknown_type(place: TensorPlace, path: Path) -> ValueError:
    number = place.type_number
    known = ", ".join(["F32", "F16", "BF16", *(t.name for t in BLOCK_TYPES.values())])
    return ValueError(
        f"the tensor {place.name} of {path} is {OTHER_TYPES.get(number, number)}; "
        f"load_gguf() has {known}. Take a file of these types, such as Q4_K_M, or make "
        "one by llama.cpp's llama-quantize."
    )
