"""What a limit depends on: the matrix instructions of this processor."""

import torch


def has_amx() -> bool:
    """Whether the processor multiplies tiles of bfloat16 and int8 (Intel's AMX)."""
    found = torch.cpu.get_capabilities()
    return bool(found.get("amx_bf16")) and bool(found.get("amx_int8"))


def at_most(*, with_amx: float, without: float) -> float:
    """The largest allowed ratio of a row on this processor."""
    return with_amx if has_amx() else without
