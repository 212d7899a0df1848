// The devices of an op's operands, checked.
#pragma once

#include <ATen/core/stack.h>

#include "op/op_record.h"

namespace xpurt {

// The ordinal on which the op runs: that of its xpu operands, else of its Device
// argument, else the current one. Throws if operands are on different devices, except
// for 0-dim CPU tensors that are only read, and for CPU tensors such as indices (see
// OpRecord::anywhere).
c10::DeviceIndex ordinal_of_operands(const OpRecord& record,
                                     const torch::jit::Stack& stack);

// Whether a call has nothing to compute but the properties of its results, or an error:
// the first argument is a tensor without elements, or no operand that has dimensions
// has any. PyTorch's kernels run such calls.
bool has_no_elements(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);

// Whether a row leaves a call without elements to PyTorch's kernel, which the op has if
// `has_cpu_kernel`. A graph that is being captured cannot hold that kernel.
bool is_left_to_host(bool has_cpu_kernel, const c10::FunctionSchema& schema,
                     const torch::jit::Stack& stack, c10::Device device);

// Whether a parameter or a statistic of a normalization has another number of elements
// than the input has channels. PyTorch's CPU kernels read such a one out of bounds.
bool has_wrong_length(const at::Tensor& parameter, const at::Tensor& input);
void check_length(const at::Tensor& parameter, const at::Tensor& input,
                  const std::string& name);

// Throws if `other`, which is the argument called `name`, is not on the device of
// `first`. For composite ops, whose parts would accept it or name themselves.
void check_same_device(const char* op, const at::Tensor& first, const at::Tensor& other,
                       const char* name);

}  // namespace xpurt
