"""The cases of a rank: attention that is divided among ranks, against one process."""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import RANKS, XPU, main
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)

warnings.simplefilter("ignore")

SHAPE = (2, 4, 16, 8)  # batch, heads, sequence, width
BATCH, HEADS, SEQUENCE = 0, 1, 2


def _seeded(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _query_key_value() -> list[Tensor]:
    return [_seeded(seed, *SHAPE).requires_grad_() for seed in (1, 2, 3)]


WEIGHT = _seeded(4, *SHAPE)


def _expected(**options: Any) -> list[Tensor]:
    """The output and the gradients, on CPU tensors of one process."""
    given = _query_key_value()
    out = F.scaled_dot_product_attention(*given, **options)
    (out * WEIGHT).sum().backward()
    return [out.detach(), *(each.grad for each in given)]


def _mesh() -> DeviceMesh:
    return init_device_mesh("xpu", (RANKS,))


def _check(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.detach().cpu(), other, rtol=1e-5, atol=1e-5)


def _sharded(
    placement: Placement, mask: DTensor | None = None, **options: Any
) -> list[DTensor]:
    """The output and the gradients of query, key and value that are placed so."""
    given = [
        distribute_tensor(each.detach().to(XPU), _mesh(), [placement])
        for each in [*_query_key_value(), WEIGHT]
    ]
    *operands, weight = given
    for each in operands:
        each.requires_grad_()
    out: Any = F.scaled_dot_product_attention(*operands, mask, **options)
    (out * weight).sum().backward()
    return [out, *(each.grad for each in operands)]


def sharded_by_batches_and_heads() -> None:
    for place, causal in itertools.product((BATCH, HEADS), (False, True)):
        found = _sharded(Shard(place), is_causal=causal)
        assert {each.placements for each in found} == {(Shard(place),)}
        _check([each.full_tensor() for each in found], _expected(is_causal=causal))


def a_mask_decides_what_is_sharded() -> None:
    host = _seeded(5, 2, 1, 16, 16)
    expected = _expected(attn_mask=host)
    for operands, of_mask, of_output in (
        (Shard(HEADS), Replicate(), Shard(HEADS)),
        (Shard(BATCH), Shard(BATCH), Shard(BATCH)),
        (Replicate(), Shard(BATCH), Shard(BATCH)),
        (Shard(BATCH), Replicate(), Replicate()),
    ):
        mask = distribute_tensor(host.to(XPU), _mesh(), [of_mask])
        found = _sharded(operands, mask)
        if of_output != Replicate():
            assert found[0].placements == (of_output,)
        _check([each.full_tensor() for each in found], expected)
    mask = distribute_tensor(host.to(XPU), _mesh(), [Shard(2)])
    with pytest.raises(NotImplementedError, match="Redistribute the mask"):
        _sharded(Replicate(), mask)


@contextmanager
def _ring_options(rotation: str, balanced: bool) -> Iterator[None]:
    from torch.distributed.tensor.experimental import _attention as ring

    ring._cp_options.enable_load_balance = balanced
    ring.set_rotate_method(rotation)
    try:
        yield
    finally:
        ring._cp_options.enable_load_balance = True
        ring.set_rotate_method("allgather")


def _by_sequence(mesh: DeviceMesh, causal: bool) -> list[Tensor]:
    """The output and the gradients, each as a whole."""
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import (
        context_parallel_unshard,
    )

    given = [each.detach().to(XPU) for each in _query_key_value()]
    weight = WEIGHT.to(XPU)
    with context_parallel(
        mesh, buffers=[*given, weight], buffer_seq_dims=[SEQUENCE] * 4
    ):
        for each in given:
            each.requires_grad_()
        out = F.scaled_dot_product_attention(*given, is_causal=causal)
        (out * weight).sum().backward()
        parts = [out.detach(), *(each.grad for each in given)]
        for each in given:
            each.requires_grad_(False)
        whole: list[Tensor] = context_parallel_unshard(
            mesh, parts, [SEQUENCE] * len(parts)
        )
    return whole


def context_parallel_is_one_attention() -> None:
    for rotation, (causal, balanced) in itertools.product(
        ("allgather", "alltoall"), ((False, False), (True, False), (True, True))
    ):
        with _ring_options(rotation, balanced):
            found = _by_sequence(_mesh(), causal)
        _check(found, _expected(is_causal=causal))


def context_parallel_takes_the_fused_attention_alone() -> None:
    from torch.distributed.tensor.experimental import context_parallel

    given = [each.detach().to(XPU) for each in _query_key_value()]
    with (
        context_parallel(_mesh(), buffers=given, buffer_seq_dims=[SEQUENCE] * 3),
        pytest.raises(NotImplementedError, match="needs the fused attention"),
    ):
        F.scaled_dot_product_attention(*given, is_causal=True, dropout_p=0.5)
    length = SHAPE[SEQUENCE]
    mask = torch.zeros(1, 1, length // RANKS, length, device=XPU)
    with (
        _ring_options("allgather", False),
        context_parallel(_mesh(), buffers=given, buffer_seq_dims=[SEQUENCE] * 3),
        pytest.raises(NotImplementedError, match="takes no mask"),
    ):
        F.scaled_dot_product_attention(*given, attn_mask=mask)
    dist.barrier()
    # Afterwards all forms are possible again.
    F.scaled_dot_product_attention(*given, dropout_p=0.5)


if __name__ == "__main__":
    main(globals())
