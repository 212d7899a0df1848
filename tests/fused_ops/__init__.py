"""Tests of `torch.ops.xpurt`: fused ops on CPU tensors and on xpu."""
