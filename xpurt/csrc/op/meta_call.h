// What an op gives, without computing it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace xpurt {

// The results of an op for arguments at the end of the stack, which is left alone, as
// meta tensors: sizes, strides and dtypes. Undefined where the op gives no tensor.
// Throws what the op throws for arguments that do not fit.
std::vector<at::Tensor> meta_call(const c10::OperatorHandle& op,
                                  const torch::jit::Stack& stack);

// What the results of an op look like, given its arguments as meta tensors: for ops of
// which PyTorch has no meta function, or one that is slow or wrong.
using MetaFunction = std::vector<at::Tensor> (*)(const torch::jit::Stack& metas);
bool register_meta_functions(
    std::initializer_list<std::pair<const char*, MetaFunction>> functions);

}  // namespace xpurt
