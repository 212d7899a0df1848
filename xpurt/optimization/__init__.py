"""Faster models, by choice of the user: fused layers and packed weights for tensors of
the CPU and of xpu, and training in bfloat16."""

from xpurt.optimization.optimize_model import optimize
from xpurt.optimization.packed_weights import forget_packs
from xpurt.optimization.report import Report

__all__ = ["Report", "forget_packs", "optimize"]
