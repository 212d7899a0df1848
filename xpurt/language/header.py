"""The header of a GGUF file: its metadata, and where its tensors lie.

Source: ggml's docs/gguf.md, versions 2 and 3. The reader of the package gguf takes
seconds for the vocabulary of a model, which is passed over here.
"""

import struct
from dataclasses import dataclass
from mmap import mmap
from typing import Any

_STRING, _ARRAY = 8, 9
_SCALARS = dict(enumerate("BbHhIif?", 0)) | {10: "Q", 11: "q", 12: "d"}
_VERSIONS = (2, 3)
_ALIGNMENT = 32  # bytes, where the file names no other


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor's type, by its number, and its first byte in the file.

    shape: with the rows first.
    """

    name: str
    shape: tuple[int, ...]
    type_number: int
    begin: int


class DamagedError(ValueError):
    """The bytes are not those of a whole header."""


class Header:
    """metadata: single values by key; arrays are left out.
    entries: the bytes of each key with its value, but for arrays of the tokenizer.
    """

    def __init__(self, file: mmap) -> None:
        """Raises DamagedError for a header that ends too early or cannot be."""
        self._file, self._at = memoryview(file), 4  # after "GGUF"
        self.metadata: dict[str, Any] = {}
        self.entries: list[bytes] = []
        try:
            self._read()
        except (struct.error, UnicodeDecodeError) as error:
            raise DamagedError(f"{error}, at byte {self._at:,}") from None

    def _read(self) -> None:
        version = self._number("I")
        if version not in _VERSIONS:
            raise DamagedError(f"version {version}, of which 2 and 3 are known")
        tensors, entries = self._number("Q"), self._number("Q")
        for _ in range(entries):
            begin = self._at
            key = self._string()
            kind = self._number("I")
            value = self._value(kind)
            if kind != _ARRAY:
                self.metadata[key] = value
            if kind != _ARRAY or not key.startswith("tokenizer."):
                self.entries.append(bytes(self._file[begin : self._at]))
        table = [self._place() for _ in range(tensors)]
        alignment = int(self.metadata.get("general.alignment", _ALIGNMENT))
        if alignment < 1:
            raise DamagedError(f"an alignment of {alignment} bytes")
        begin = -(-self._at // alignment) * alignment
        self.tensors = [
            TensorPlace(name, shape, kind, begin + offset)
            for name, shape, kind, offset in table
        ]

    def _number(self, code: str) -> Any:
        found = struct.unpack_from(f"<{code}", self._file, self._at)[0]
        self._at += struct.calcsize(f"<{code}")
        return found

    def _string(self) -> str:
        size = self._number("Q")
        begin = self._skip(size)
        return bytes(self._file[begin : begin + size]).decode()

    def _skip(self, size: int) -> int:
        """Passes over so many bytes, and returns where they begin."""
        begin = self._at
        if begin + size > len(self._file):
            raise DamagedError(f"{size:,} bytes at byte {begin:,}, after the end")
        self._at += size
        return begin

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._pass_array()
        if kind not in _SCALARS:
            raise DamagedError(f"a value of type {kind}, at byte {self._at:,}")
        return self._number(_SCALARS[kind])

    def _pass_array(self) -> None:
        kind, count = self._number("I"), self._number("Q")
        if kind in _SCALARS:
            self._skip(count * struct.calcsize(f"<{_SCALARS[kind]}"))
            return
        for _ in range(count):
            if kind == _STRING:
                self._skip(self._number("Q"))
            else:
                self._value(kind)

    def _place(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        dimensions = self._number("I")
        shape = tuple(self._number("Q") for _ in range(dimensions))
        return name, shape[::-1], self._number("I"), self._number("Q")
