// The results of a call of a custom kernel.
#pragma once

#include "op/custom_kernel_call.h"
#include "op/custom_kernel_spec.h"

namespace xpurt {

// The tensors that the steps write, one per result; undefined for a result that the
// call does not have. Their sizes, strides and types come from the op itself, run on
// meta tensors. Throws what the op throws for shapes that do not match.
std::vector<at::Tensor> make_results(const CustomKernelSpec& spec,
                                     const CustomKernelOverload& overload,
                                     const c10::OperatorHandle& op,
                                     const torch::jit::Stack& stack,
                                     const CustomKernelCall& call);

}  // namespace xpurt
