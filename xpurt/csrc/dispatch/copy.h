// Copies between xpu tensors, and to and from the CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// A plain tensor whose values are the bytes of one block.
bool is_dense(const at::Tensor& tensor);

// Tensors of the same dtype, sizes and strides whose bytes are one dense block.
bool same_dense_layout(const at::Tensor& a, const at::Tensor& b);

}  // namespace xpurt
