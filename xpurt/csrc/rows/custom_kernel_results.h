// The results of a call of a custom kernel.
#pragma once

#include "op/custom_kernel_call.h"
#include "op/custom_kernel_spec.h"

namespace xpurt {

// The tensors that the steps write, one per result; undefined where a call has none.
// What they look like is asked of the op itself, with meta tensors.
std::vector<at::Tensor> make_results(const CustomKernelSpec& spec,
                                     const CustomKernelOverload& overload,
                                     const c10::OperatorHandle& op,
                                     const torch::jit::Stack& stack,
                                     const CustomKernelCall& call);

}  // namespace xpurt
