"""Memory of xpu tensors that several processes use, through ``torch.multiprocessing``.

Note [Shared memory]
~~~~~~~~~~~~~~~~~~~~
The CPU device reads and writes every address of its process. So there an xpu storage can
have the memory that PyTorch shares between processes: it is that of a CPU storage, which
the xpu storage borrows. ``share_memory_()`` moves the bytes there, and so does a tensor
that is sent to another process, as for CPU tensors. What is sent is the CPU storage. The
other process makes an xpu storage over it, once for all tensors that share it.

Other devices cannot open the memory of another process. A copy in its place would be
wrong in silence: the processes of a program such as Hogwild would each train a network of
their own. So there it is an error, as in PyTorch's own xpu.
"""

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn, cast

import torch
from torch.multiprocessing import reductions as typed_reductions

from xpurt import _C
from xpurt.mapping import current_placement

# PyTorch's functions that move a storage, without the knowledge of its device.
_MOVES = ("_share_fd_cpu_", "_share_filename_cpu_")

# These have no types.
reductions: Any = typed_reductions

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def share_storages() -> Callable[[], None]:
    """Gives xpu storages shared memory. Returns a function that undoes this."""
    kind = torch.UntypedStorage
    ForkingPickler.register(kind, _reduce)
    changes = {name: _refused(vars(kind)[name]) for name in _MOVES}
    changes["share_memory_"] = _share_memory(kind.share_memory_)
    changes["is_shared"] = _is_shared(kind.is_shared)
    before = {name: vars(kind).get(name) for name in changes}
    for name, change in changes.items():
        setattr(kind, name, change)

    def undo() -> None:
        ForkingPickler.register(kind, reductions.reduce_storage)
        for name, original in before.items():
            if original is None:
                delattr(kind, name)  # that of the base class
            else:
                setattr(kind, name, original)

    return undo


def _share_memory(original: Callable[..., Any]) -> Callable[..., Any]:
    def share_memory_(storage: torch.UntypedStorage) -> torch.UntypedStorage:
        if storage.device.type != "xpu":
            return cast(torch.UntypedStorage, original(storage))
        _in_shared_memory(storage)
        return storage

    return share_memory_


def _is_shared(original: Callable[..., Any]) -> Callable[..., Any]:
    def is_shared(storage: torch.UntypedStorage) -> bool:
        if storage.device.type != "xpu":
            return bool(original(storage))
        lender = _C.lender_of(_bytes_of(storage))
        return lender is not None and _is_shared_tensor(lender)

    return is_shared


def _in_shared_memory(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """The CPU storage whose memory the xpu storage has, which it is moved into."""
    index = storage.device.index
    _check_can_share(index)
    whole = _bytes_of(storage)
    lender = _C.lender_of(whole)
    if lender is not None and (_is_shared_tensor(lender) or not storage.nbytes()):
        return lender.untyped_storage()
    shared = torch.UntypedStorage._new_shared(storage.nbytes())  # type: ignore[no-untyped-call]
    if storage.nbytes():  # without bytes there is nothing to move
        _C.move_to_memory_of(whole, _bytes_of(shared))
    return cast(torch.UntypedStorage, shared)


def _check_can_share(index: int) -> None:
    devices = current_placement().ordinals[index]
    blind = [str(device) for device in devices if not device.system_usm]
    if not blind:
        return
    raise RuntimeError(
        f"memory of xpu:{index} cannot be shared with another process: "
        f"{', '.join(blind)} cannot read its memory there. Take the mapping "
        '"CPU", or share and send tensor.cpu().'
    )


def _is_shared_tensor(tensor: Any) -> bool:
    return bool(tensor.is_shared())


def _bytes_of(storage: torch.UntypedStorage) -> torch.Tensor:
    made = torch.empty(0, dtype=torch.uint8, device=storage.device)
    return made.set_(storage)


def _reduce(storage: torch.UntypedStorage) -> Reduced:
    if storage.device.type != "xpu":
        return cast(Reduced, reductions.reduce_storage(storage))
    index = storage.device.index
    if not storage.nbytes():
        return _rebuild_empty, (index,)
    shared = _in_shared_memory(storage)
    torch.xpu.synchronize(index)  # the other process reads as soon as it wants
    _remember(storage, shared)
    return _rebuild, (shared, index)


def _rebuild(shared: torch.UntypedStorage, index: int) -> torch.UntypedStorage:
    known = reductions.storage_from_cache(torch.UntypedStorage, _key(shared, index))
    if known is not None:
        return cast(torch.UntypedStorage, known)
    _check_can_share(index)
    storage = _C.share_with_xpu(_bytes_of(shared), index).untyped_storage()
    _remember(storage, shared)
    return storage


def _rebuild_empty(index: int) -> torch.UntypedStorage:
    storage: Any = torch.UntypedStorage
    return cast(torch.UntypedStorage, storage(0, device=torch.device("xpu", index)))


def _key(shared: torch.UntypedStorage, index: int) -> tuple[str, int, int]:
    return "xpu", index, shared.data_ptr()


def _remember(storage: torch.UntypedStorage, shared: torch.UntypedStorage) -> None:
    cache: Any = reductions.shared_cache
    cache[_key(shared, storage.device.index)] = reductions.StorageWeakRef(storage)


def _refused(original: Callable[..., Any]) -> Callable[..., Any]:
    def refused(storage: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        if storage.device.type == "xpu":
            _refuse(storage)
        return original(storage, *args, **kwargs)

    return refused


def _refuse(storage: torch.UntypedStorage) -> NoReturn:
    raise RuntimeError(
        f"a storage of {storage.device} has no file for shared memory. Use "
        "share_memory_(), or send a tensor."
    )
