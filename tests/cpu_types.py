"""What optimized layers of CPU tensors compute on this processor."""

import pytest
import torch

from xpurt.optimization.fused_layers import types_of_cpu


def need_bf16(device: str | torch.device = "cpu") -> None:
    """Skips a test of optimized layers in bfloat16 on CPU tensors where oneDNN has none:
    it needs AVX-512. A processor without it is refused, which test_left_as_it_is sees."""
    if torch.device(device).type == "cpu" and torch.bfloat16 not in types_of_cpu():
        pytest.skip("oneDNN computes no bfloat16 on this processor")
