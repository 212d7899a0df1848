// What functionalization keeps for lazy tensors: the value that was traced, and writes.
#pragma once

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/ivalue.h>

namespace xpurt {

// Whether it is a lazy tensor of a program, which functionalization has wrapped.
bool is_lazy_wrapper(const c10::IValue& value);

at::FunctionalTensorWrapper& wrapper_of(const at::Tensor& tensor);

// What was traced for the tensor, with all writes. Another tensor is returned as it is.
at::Tensor traced(const at::Tensor& tensor);

// Throws if `value` can't be written to a lazy tensor, as an op in place does.
void check_written(const at::Tensor& self, const at::Tensor& value);

// Makes what was traced the value of a lazy tensor, of the same sizes. All views of its
// memory see it.
void write(const at::Tensor& self, const at::Tensor& value);

}  // namespace xpurt
