// The properties of an op's results, without computing them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "host/api.h"

namespace xpurt {

// The results of an op as meta tensors: sizes, strides and dtypes. The arguments are at
// the end of the stack, which stays unchanged. A result that is not a tensor is
// undefined. Throws what the op throws for invalid arguments.
XPURT_API std::vector<at::Tensor> meta_call(const c10::OperatorHandle& op,
                                            const torch::jit::Stack& stack);

// Whether the op's meta function is in C++, with all checks of the CPU kernel.
bool has_strict_meta(const c10::FunctionSchema& schema);

// Whether the `outs` arguments at the end of the stack, which are out=, have the types
// of the results of `functional`, the overload without them. Throws like meta_call().
XPURT_API bool have_types_of_results(const c10::OperatorHandle& functional,
                                     const torch::jit::Stack& stack, size_t outs);

// For a call that failed: throws the error of PyTorch's CPU kernel for zeros in place
// of the operands, if it has one. Returns the kernel's results if it accepts the call.
// A large call is left out; then there are no results.
XPURT_API torch::jit::Stack throw_what_the_cpu_throws(const c10::OperatorHandle& op,
                                                      const torch::jit::Stack& stack);

// Returns the results of an op as meta tensors, given its arguments as meta tensors.
// For ops whose meta function in PyTorch is missing, slow or wrong.
using MetaFunction = std::vector<at::Tensor> (*)(const torch::jit::Stack& metas);
bool register_meta_functions(
    std::initializer_list<std::pair<const char*, MetaFunction>> functions);

}  // namespace xpurt
