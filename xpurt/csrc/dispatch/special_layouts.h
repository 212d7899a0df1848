// Ops on tensors that have more than sizes and strides: sparse, quantized, nested.
#pragma once

#include "op/op_record.h"

namespace xpurt {

// run_op() for such operands. PyTorch's CPU kernels reject unsupported layouts with
// internal asserts. These become NotImplementedError with the op's name and a remedy.
void run_special_op(OpRecord& record, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack);

// Registers a fallthrough for AutogradNestedTensor. In PyTorch, an op without a kernel
// for that key raises there, even if a user has registered a kernel for NestedTensorXPU
// (or NestedTensorCPU), which comes after it.
void let_nested_kernels_be_reached();

}  // namespace xpurt
