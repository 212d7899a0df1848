// What an op gives, without computing it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace xpurt {

// The results of an op for arguments at the end of the stack, which is left alone, as
// meta tensors: sizes, strides and dtypes. Undefined where the op gives no tensor.
// Throws what the op throws for arguments that do not fit.
std::vector<at::Tensor> meta_call(const c10::OperatorHandle& op,
                                  const torch::jit::Stack& stack);

}  // namespace xpurt
