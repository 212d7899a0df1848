"""The bytes of a small GGUF file, written by hand: the package gguf is not needed."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 32


@dataclass(frozen=True)
class Written:
    """A tensor of the file. shape: with the rows first. data: its bytes."""

    name: str
    shape: tuple[int, ...]
    type_number: int
    data: bytes


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _entry(key: str, value: object) -> bytes:
    if isinstance(value, list):
        parts = b"".join(map(string, value))
        return string(key) + struct.pack("<IIQ", 9, 8, len(value)) + parts
    if isinstance(value, str):
        return string(key) + struct.pack("<I", 8) + string(value)
    return string(key) + struct.pack("<II", 4, value)


def gguf_bytes(metadata: Mapping[str, object], tensors: Sequence[Written]) -> bytes:
    """A file of version 3. Values are strings, lists of strings and unsigned integers."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_entry(key, value) for key, value in metadata.items())
    data = b""
    for each in tensors:
        shape = each.shape[::-1]
        head += string(each.name)
        head += struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", each.type_number, len(data))
        data += each.data + bytes(-len(each.data) % ALIGNMENT)
    return head + bytes(-len(head) % ALIGNMENT) + data
