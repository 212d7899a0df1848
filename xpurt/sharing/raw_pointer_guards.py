"""Notices raw pointers that leave PyTorch.

Under AUTO over devices that share no memory, the bytes at a tensor's data pointer may
be stale: a replica on another device is the valid copy. A request for a pointer makes
the bytes valid, and the storage stays at home from then on. With lazy copies, a storage
whose pointer is known is never copied lazily. Ops need none of this. The functions that
give Python code a pointer are wrapped, and only while one of these two cases holds.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack

from xpurt import _C, mapping

# The owner and the name of each function that gives out a pointer; torch._C for DLPack.
_POINTER_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "data_ptr"),
    (torch.UntypedStorage, "data_ptr"),
    (torch._C, "_to_dlpack"),
    (torch.utils.dlpack, "to_dlpack"),
    (torch._C, "_to_dlpack_versioned"),
)
# DLPack's exchange from C to C: a consumer calls no Python function of ours.
_C_EXCHANGE = "__dlpack_c_exchange_api__"

_originals: dict[tuple[Any, str], Any] = {}


def follow_mapping() -> None:
    """Called once: wraps and unwraps as the mapping changes."""
    mapping.on_change(_update_guards)


_copies_are_lazy = False


def follow_lazy_copies() -> None:
    """From now on requests for pointers are noticed under every mapping."""
    global _copies_are_lazy
    _copies_are_lazy = True
    _wrap()


def _update_guards() -> None:
    placement = mapping.current_placement()
    replicated = any(len(devices) > 1 for devices in placement.ordinals)
    if replicated or _copies_are_lazy:
        _wrap()
    else:
        _unwrap()


def _wrap() -> None:
    if _originals:
        return
    for owner, name in _POINTER_FUNCTIONS:
        _originals[owner, name] = vars(owner).get(name)
        setattr(owner, name, _guarded(getattr(owner, name)))
    _originals[torch.Tensor, _C_EXCHANGE] = vars(torch.Tensor)[_C_EXCHANGE]
    delattr(torch.Tensor, _C_EXCHANGE)


def _unwrap() -> None:
    while _originals:
        (owner, name), original = _originals.popitem()
        if original is None:  # it was inherited
            delattr(owner, name)
        else:
            setattr(owner, name, original)


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(subject: Any, *args: Any, **kwargs: Any) -> Any:
        is_storage = isinstance(subject, torch.UntypedStorage)
        if subject.device.type == "xpu":
            (_C.escape_storage if is_storage else _C.escape)(subject)
        if _copies_are_lazy and subject.device.type in ("cpu", "xpu"):
            mark = _C.never_copy_storage_lazily if is_storage else _C.never_copy_lazily
            mark(subject)
        return function(subject, *args, **kwargs)

    return guarded
