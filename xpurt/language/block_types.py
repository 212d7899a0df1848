"""The types of GGUF's tensors that are quantized in blocks.

Each row of a matrix is a sequence of blocks, and a block holds its own scales: rows can be
selected and reordered as bytes. Source: ggml's ggml-common.h.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockType:
    """A type with blocks of `values` values in `size_bytes` bytes.

    number: the type's number in GGUF files (ggml_type).
    """

    name: str
    number: int
    values: int
    size_bytes: int

    def row_bytes(self, values: int) -> int:
        """The bytes of a row of so many values."""
        return values // self.values * self.size_bytes

    def row_values(self, size_bytes: int) -> int:
        """The values of a row of so many bytes."""
        return size_bytes // self.size_bytes * self.values


BLOCK_TYPES = {
    each.number: each
    for each in (
        BlockType("Q4_0", 2, 32, 18),
        BlockType("Q4_1", 3, 32, 20),
        BlockType("Q5_0", 6, 32, 22),
        BlockType("Q5_1", 7, 32, 24),
        BlockType("Q8_0", 8, 32, 34),
        BlockType("Q4_K", 12, 256, 144),
        BlockType("Q5_K", 13, 256, 176),
        BlockType("Q6_K", 14, 256, 210),
    )
}

# Names of types that stay unknown, for the message that says so.
OTHER_TYPES = {
    10: "Q2_K",
    11: "Q3_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
    40: "NVFP4",
}
