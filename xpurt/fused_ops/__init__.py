"""Fused ops for CPU tensors and xpu, `torch.ops.xpurt.*`: with gradients, fake kernels for
the compiler, and autocast. docs/kernels.md has the table of them."""

from xpurt.fused_ops import (
    convolution,
    cross_entropy,
    linear,
    paged_attention,
    rms_norm,
    rotary,
    swiglu,
)

_FAMILIES = (
    linear,
    convolution,
    rotary,
    rms_norm,
    swiglu,
    cross_entropy,
    paged_attention,
)


def define_ops() -> None:
    """Defines the ops. Called once, by `import xpurt`."""
    for family in _FAMILIES:
        family.define_op()
