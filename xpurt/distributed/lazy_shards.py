"""FSDP2 on lazy tensors: where it reads the memory of tensors, which a lazy one has not.

Note [Shards of lazy tensors]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
FSDP2 frees an unsharded parameter by a storage without bytes, and fills the same storage
before the next use. It compares addresses to find out whether a shard is still that of its
parameter. Its own ops write to lists of views. For a lazy tensor the storage is where
functionalization keeps the last write, without bytes: freeing is left out, storages are
compared themselves, and the ops are made of others. So unsharded parameters stay in
memory between their uses. Placeholders without a value were tried in their place: the
step after a backward pass read some of them, and raised.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

_KEY = "AutogradLazy"  # before functionalization, which refuses ops that write to lists


def change(collectives: ModuleType) -> None:
    """Changes ``torch.distributed.fsdp._fully_shard._fsdp_collectives``, and the parameters
    that it imports."""
    parameters: Any = sys.modules[collectives.FSDPParam.__module__]
    for name in ("alloc_storage", "free_storage"):
        setattr(parameters, name, _unless_lazy(getattr(parameters, name)))
    kind = parameters.FSDPParam
    kind.reset_sharded_param = _by_storages(kind.reset_sharded_param)
    for op in (all_gather_copy_in, split_with_sizes_copy, chunk_cat):
        collectives.lib.impl(op.__name__, op, _KEY)


def _unless_lazy(before: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    @functools.wraps(before)
    def made(tensor: Tensor) -> None:
        if tensor.device.type != "lazy":
            before(tensor)

    return made


def _by_storages(before: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(before)
    def reset_sharded_param(shard: Any) -> None:
        data = shard._sharded_param_data
        if data.device.type != "lazy":
            return before(shard)
        of = shard._module_info
        parameter = getattr(of.module, of.param_name)
        if _storage(data) != _storage(parameter._local_tensor):
            shard._sharded_param_data = None  # no address is compared then
            return before(shard)
        shard.sharded_param = parameter
        shard._sharding_spec = parameter._spec
        return None

    return reset_sharded_param


def _storage(tensor: Tensor) -> Any:
    return tensor.untyped_storage()._cdata


def all_gather_copy_in(
    inputs: list[Tensor],
    output: Tensor,
    sizes: Sequence[int],
    elements: int,
    rank: int,
) -> tuple[Tensor, Tensor]:
    """All inputs as one, which need not be a part of the output."""
    return torch.cat(inputs), output


def split_with_sizes_copy(
    whole: Tensor, sizes: Sequence[int], dim: int = 0, *, out: list[Tensor]
) -> None:
    """The parts of `whole` to the tensors of `out`."""
    for each, part in zip(out, whole.split_with_sizes(sizes, dim), strict=True):
        each.copy_(part)


def chunk_cat(tensors: list[Tensor], dim: int, num_chunks: int, *, out: Tensor) -> None:
    """The chunks of all tensors, one after another, to `out`."""
    out.copy_(torch._chunk_cat(tensors, dim, num_chunks))
