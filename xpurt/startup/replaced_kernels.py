"""Kernels that a library registered for xpu before xpurt was loaded."""

import warnings
from typing import Final

import torch

KEYS: Final = ("XPU", "AutogradXPU", "SparseXPU", "SparseCsrXPU", "NestedTensorXPU")


def registered() -> list[tuple[str, str]]:
    """Each op with a kernel of its own on a key of xpu, and the key. In a wheel without
    xpu there is none, unless another library has registered it."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key
    return [(name, key) for key in KEYS for name in names(key)]


def warn_of_replaced(before: list[tuple[str, str]]) -> None:
    """Warns of the kernels in `before` that xpurt's own took the place of."""
    replaced = [
        f"{name} on {key}"
        for name, key in before
        if f"\n{key} (inactive):" in torch._C._dispatch_dump(name)
    ]
    if replaced:
        warnings.warn(
            f"xpurt's kernels replace those that another library has registered before "
            f"xpurt was loaded: {', '.join(replaced)}. To keep the others, import xpurt "
            "before that library: the kernel that is registered last is called.",
            RuntimeWarning,
            stacklevel=2,
        )
