// Ops on tensors that are more than sizes and strides: sparse, quantized, nested.
#pragma once

#include "op/op_record.h"

namespace xpurt {

// run_op() for such operands. PyTorch's CPU kernels say with internal asserts which
// layouts they do not take: these become an error that names the op and a remedy.
void run_special_op(OpRecord& record, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack);

// An op without a kernel for AutogradNestedTensor stops there, as PyTorch has it,
// though a user's kernel for NestedTensorXPU (or NestedTensorCPU) waits below: lets it
// through.
void let_nested_kernels_be_reached();

}  // namespace xpurt
