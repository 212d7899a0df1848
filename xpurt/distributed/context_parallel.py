"""Context parallel attention on xpu: each rank has a part of the sequence.

PyTorch's ring attention (H. Liu, M. Zaharia and P. Abbeel, "Ring Attention with
Blockwise Transformers for Near-Infinite Context", 2023) takes any op that returns the
logarithm of the sum of exponentials, too. PyTorch gives it those of CUDA. The fused
attention of CPU and xpu tensors returns it as well, so it is one more.

PyTorch balances the load by another order of the sequence. The parts of a causal mask
follow from that order within the ring alone. So an attention that is computed from
products and softmax would be wrong: it is an error while the ring is in force.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from xpurt import _C
from xpurt.distributed.attention_sharding import BACKWARD, FORWARD

SEQUENCE = 2  # dimension


def change(ring: ModuleType) -> None:
    """Changes PyTorch's module of ring attention."""
    ring.custom_ops[FORWARD] = functools.partial(_forward, ring)
    ring.custom_ops[BACKWARD] = functools.partial(_backward, ring)
    begin = ring._enable_cp_dtensor_dispatcher
    end = ring._disable_cp_dtensor_dispatcher
    vars(ring)["_enable_cp_dtensor_dispatcher"] = _and_fused(begin, True)
    vars(ring)["_disable_cp_dtensor_dispatcher"] = _and_fused(end, False)


def _and_fused(before: Callable[[], None], on: bool) -> Callable[[], None]:
    @functools.wraps(before)
    def changed() -> None:
        before()
        _C.require_fused_attention(on)

    return changed


def _forward(
    ring: Any, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Of (query, key, value, dropout_p=0, is_causal=False); returns the output and the
    logarithm of the sums."""
    query, key, value, *rest = args
    given: list[Any] = [*rest, *(0.0, False)[len(rest) :]]
    dropout, causal = given
    _check(query, kwargs)
    results = ring._templated_ring_attention(
        query.device_mesh.get_group(),
        SEQUENCE,
        FORWARD,
        *(each._local_tensor for each in (query, key, value)),
        is_causal=causal,
        dropout_p=dropout,
        scale=kwargs.get("scale"),
    )
    return _like(query, results)


def _backward(
    ring: Any, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Of (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal)."""
    *tensors, dropout, causal = args
    query = tensors[1]
    _check(query, kwargs)
    grad, *saved = (each._local_tensor for each in tensors)
    results = ring._templated_ring_attention_backward(
        query.device_mesh.get_group(),
        SEQUENCE,
        BACKWARD,
        grad,
        "grad_out",
        *saved,
        causal,
        dropout_p=dropout,
        scale=kwargs.get("scale"),
    )
    return _like(query, results)


def _check(query: Any, kwargs: Mapping[str, Any]) -> None:
    if kwargs.get("attn_mask") is not None:
        raise NotImplementedError(
            "context parallel attention takes no mask. Leave it out, or use is_causal."
        )
    if [each.is_shard(SEQUENCE) for each in query.placements] != [True]:
        raise NotImplementedError(
            "context parallel attention wants a query that is sharded by the sequence, "
            f"dimension {SEQUENCE}, on a mesh of one dimension; found "
            f"{query.placements}. Give context_parallel() a mesh of one dimension."
        )


def _like(query: Any, results: Sequence[Any]) -> tuple[Any, ...]:
    """DTensors of the local results, sharded as the query is."""
    made = type(query).from_local
    mesh, places = query.device_mesh, query.placements
    return tuple(made(each, mesh, places, run_check=False) for each in results)
