"""Notices raw pointers that leave PyTorch.

Under AUTO over devices that share no memory, the bytes at a tensor's data pointer may
be stale: a replica on another device is the valid copy. A request for a pointer makes
the bytes valid, and the storage stays at home from then on. With lazy copies, a storage
whose pointer is known is never copied lazily. Ops need none of this. PyTorch's functions
that give Python code a pointer have guards in C, and only while one of these two cases
holds: see Note [Raw pointer guards] in csrc/python/bind_raw_pointers.cpp.
"""

from xpurt import _C, mapping

_copies_are_lazy = False


def follow_mapping() -> None:
    """Called once: adds and removes the guards as the mapping changes."""
    mapping.on_change(_update_guards)


def follow_lazy_copies() -> None:
    """From now on requests for pointers are noticed under every mapping."""
    global _copies_are_lazy
    _copies_are_lazy = True
    _C.guard_raw_pointers(True, True)


def _update_guards() -> None:
    placement = mapping.current_placement()
    replicated = any(len(devices) > 1 for devices in placement.ordinals)
    _C.guard_raw_pointers(replicated or _copies_are_lazy, _copies_are_lazy)
