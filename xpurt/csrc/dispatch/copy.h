// Copies between xpu tensors, and to and from the CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// Whether the tensor is plain and its values are the bytes of one block.
bool is_dense(const at::Tensor& tensor);

// Whether both tensors are dense, with the same dtype, sizes and strides.
bool same_dense_layout(const at::Tensor& a, const at::Tensor& b);

}  // namespace xpurt
