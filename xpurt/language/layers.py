"""Layers whose weights stay in GGUF's blocks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from xpurt.language.block_types import BlockType
from xpurt.quantization.layers import QuantizedLayer


class _BlockLayer(QuantizedLayer):
    """blocks: uint8 `(rows, bytes of a row)`, usually the bytes of a mapped file."""

    blocks: Tensor

    def __init__(self, blocks: Tensor, block_type: BlockType) -> None:
        super().__init__()
        self.block_type = block_type
        self.register_buffer("blocks", blocks)

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(
                f"{type(self).__name__} has no `weight`: it has `blocks`, of type "
                f"{self.block_type.name}. torch.ops.xpurt.block_values() has the values."
            )
        return super().__getattr__(name)


class BlockLinear(_BlockLayer):
    """A linear layer with weights in blocks. The result has the type of the input."""

    def __init__(
        self, blocks: Tensor, block_type: BlockType, bias: Tensor | None = None
    ) -> None:
        super().__init__(blocks, block_type)
        self.out_features = len(blocks)
        self.in_features = block_type.row_values(blocks.size(1))
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.xpurt.block_linear(
            x, self.blocks, self.block_type.number, self.bias
        )
        return result

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.block_type.name}"


class BlockEmbedding(_BlockLayer):
    """An embedding with weights in blocks. Only the rows of the tokens are unpacked.

    Results have the type `dtype`, which `Module.to(dtype)` changes.
    scale: a factor of the results, as some models have it.
    """

    _typed: Tensor

    def __init__(
        self,
        blocks: Tensor,
        block_type: BlockType,
        dtype: torch.dtype,
        scale: float = 1.0,
    ) -> None:
        super().__init__(blocks, block_type)
        self.num_embeddings = len(blocks)
        self.embedding_dim = block_type.row_values(blocks.size(1))
        self.scale = scale
        # Has the type of the results: `to` converts it, as it would a weight.
        typed = torch.empty(0, dtype=dtype, device=blocks.device)
        self.register_buffer("_typed", typed, persistent=False)

    def _apply(
        self, fn: Callable[[Tensor], Tensor], recurse: bool = True
    ) -> "BlockEmbedding":
        typed = fn(self._typed)
        super()._apply(fn, recurse)
        self._typed = typed
        return self

    def forward(self, tokens: Tensor) -> Tensor:
        rows = self.blocks[tokens.flatten()]
        values: Tensor = torch.ops.xpurt.block_values(
            rows, self.block_type.number, self._typed.dtype
        )
        if self.scale != 1:
            values = values * torch.tensor(self.scale, dtype=values.dtype).item()
        return values.view(*tokens.shape, self.embedding_dim)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, {self.block_type.name}"


class TiedLinear(nn.Module):
    """The linear layer over the weights of an embedding: of tied weights there is one
    tensor, also after `Module.to`."""

    def __init__(self, embedding: BlockEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.in_features = embedding.embedding_dim
        self.out_features = embedding.num_embeddings

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.xpurt.block_linear(
            x, self.embedding.blocks, self.embedding.block_type.number
        )
        return result
