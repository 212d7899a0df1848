// The results of a call of a row of steps.
#pragma once

#include "custom_kernel_spec.h"
#include "steps_call.h"

namespace xpurt {

// The tensors that the steps write, one per result; undefined where a call has none.
// What they look like is asked of the op itself, with meta tensors.
std::vector<at::Tensor> make_results(const CustomKernelSpec& spec,
                                     const CustomKernelOverload& overload,
                                     const c10::OperatorHandle& op,
                                     const torch::jit::Stack& stack,
                                     const StepsCall& call);

}  // namespace xpurt
