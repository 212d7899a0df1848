"""The dispatch keys on which xpurt registers kernels: a table of
docs/pytorch_internals.md."""

from pytorch_internals.kinds import Key

KEYS = (
    Key("_ XPU", True, "every op that has no kernel on XPU"),
    Key("_ SparseXPU", True, "the same for sparse tensors"),
    Key("_ SparseCsrXPU", True, "the same for compressed sparse tensors"),
    Key("_ QuantizedXPU", True, "the same for quantized tensors"),
    Key("_ NestedTensorXPU", True, "the same for nested tensors"),
    Key("aten XPU", True, "ops with kernels of their own, and unboxed ones"),
    Key("aten AutogradXPU", True, "composite ops whose gradients differ on xpu"),
    Key("aten AutogradNestedTensor", False, "attention of nested tensors; a kernel of PyTorch's on this key would be replaced"),
    Key("aten NestedTensorXPU", True, "ops that the fallback can't run"),
    Key("aten QuantizedXPU", True, "ops that the fallback can't run"),
    Key("aten SparseCsrXPU", True, "ops that the fallback can't run"),
    Key("aten SparseXPU", True, "ops that the fallback can't run"),
    Key("aten AutocastXPU", False, "whole attention layers, which PyTorch's lists leave out; a kernel of PyTorch's for them would be replaced"),
    Key("c10d XPU", True, "collectives"),
    Key("c10d SparseXPU", True, "the sum of sparse tensors of several processes"),
    Key("xpurt XPU", True, "ops of compiled graphs, of quantized layers and of optimized models"),
    Key("xpurt CPU", False, "attention of compiled host code, quantized layers, optimized models; the namespace is xpurt's"),
    Key("xpurt Meta", False, "the shapes of quantized layers' results"),
    Key("xpurt Autograd", False, "quantized layers, whose calls are below autograd"),
    Key("xpurt CompositeExplicitAutograd", False, "refuses gradients of quantized layers"),
)  # fmt: skip
