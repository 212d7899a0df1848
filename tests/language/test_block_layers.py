"""Layers in blocks as modules: what moves, what keeps its type, what is shared."""

import copy

import pytest
import torch

import xpurt
from xpurt.language.block_types import BLOCK_TYPES, BlockType
from xpurt.language.layers import BlockEmbedding, BlockLinear, TiedLinear

Q8_0 = BLOCK_TYPES[8]


def blocks(
    rows: int = 10, block_type: BlockType = Q8_0, values: int = 512
) -> torch.Tensor:
    size = block_type.row_bytes(values)
    return torch.randint(256, (rows, size), dtype=torch.uint8)


@pytest.mark.parametrize("block_type", BLOCK_TYPES.values(), ids=lambda each: each.name)
def test_a_layer_knows_its_sizes(block_type: BlockType) -> None:
    layer = BlockLinear(blocks(10, block_type), block_type)
    assert (layer.in_features, layer.out_features) == (512, 10)
    assert repr(layer) == f"BlockLinear(512, 10, {block_type.name})"
    embedding = BlockEmbedding(blocks(10, block_type), block_type, torch.float32)
    assert (embedding.num_embeddings, embedding.embedding_dim) == (10, 512)


def test_blocks_keep_their_type() -> None:
    layer = BlockLinear(blocks(), Q8_0, torch.rand(10))
    before = layer.blocks
    layer.half()
    assert layer.blocks is before
    assert layer.bias is not None
    assert layer.bias.dtype == torch.float32


def test_the_type_of_an_embedding_is_that_of_its_results() -> None:
    embedding = BlockEmbedding(blocks(), Q8_0, torch.bfloat16)
    assert embedding._typed.dtype == torch.bfloat16
    embedding.to(torch.float32)
    assert embedding._typed.dtype == torch.float32
    assert embedding.blocks.dtype == torch.uint8
    assert list(embedding.state_dict()) == ["blocks"]


def test_a_layer_without_a_weight_names_what_it_has() -> None:
    with pytest.raises(AttributeError, match="it has `blocks`, of type Q8_0"):
        BlockLinear(blocks(), Q8_0).weight  # noqa: B018


def pair() -> torch.nn.ModuleDict:
    embedding = BlockEmbedding(blocks(), Q8_0, torch.float32)
    return torch.nn.ModuleDict({"embedding": embedding, "head": TiedLinear(embedding)})


def addresses(model: torch.nn.ModuleDict) -> set[int]:
    embedding, head = model["embedding"], model["head"]
    assert isinstance(embedding, BlockEmbedding)
    assert isinstance(head, TiedLinear)
    return {embedding.blocks.data_ptr(), head.embedding.blocks.data_ptr()}


def test_tied_layers_share_their_bytes(xpu: torch.device) -> None:
    model = pair()
    (before,) = addresses(model)
    (of_copy,) = addresses(copy.deepcopy(model))
    assert of_copy != before
    (moved,) = addresses(model.to(xpu))
    assert moved != before
    assert model["embedding"].blocks.device == xpu


@pytest.mark.mappings("CPU")
def test_xpu_has_the_bytes_themselves(xpu: torch.device) -> None:
    model = pair()
    before = addresses(model)
    assert addresses(xpurt.share(model, xpu)) == before
    assert model["embedding"].blocks.device == xpu
