"""What oneDNN computes for CPU tensors on this processor."""

import pytest
import torch

from xpurt.optimization.primitives import types_of_cpu


def has_bf16() -> bool:
    """Whether oneDNN computes bfloat16, for which it needs AVX-512."""
    return torch.bfloat16 in types_of_cpu()


def need_bf16(device: str | torch.device = "cpu") -> None:
    """Skips a test of optimized layers in bfloat16 on CPU tensors where oneDNN has none.
    `xpurt.optimize` refuses the type there, which test_left_as_it_is sees."""
    if torch.device(device).type == "cpu" and not has_bf16():
        pytest.skip("oneDNN computes no bfloat16 on this processor")
