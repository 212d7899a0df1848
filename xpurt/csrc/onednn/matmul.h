// Matrix products by oneDNN on a stream's queue.
#pragma once

#include <ATen/core/Tensor.h>

#include "stream/stream.h"

namespace xpurt {

// Whether oneDNN supports the device and computes products of `type` on it.
bool onednn_multiplies(const PhysicalDevice& device, c10::ScalarType type);

// Strides of a tensor's last two dimensions. PyTorch leaves the stride of a
// dimension with one element undefined; here it is 1.
struct MatrixStrides {
  int64_t row, column;
};
inline MatrixStrides matrix_strides(const at::Tensor& tensor) {
  return {tensor.size(-2) == 1 ? 1 : tensor.stride(-2),
          tensor.size(-1) == 1 ? 1 : tensor.stride(-1)};
}

// Whether each matrix of the tensor has a unit stride and no overlap, as oneDNN
// requires.
bool has_onednn_layout(const at::Tensor& tensor);

// One product: out = alpha * a @ b + beta * out, plus bias (one per column) if defined,
// then GELU if `gelu`. Shapes: (m, k) @ (k, n), or (batch, m, k) @ (batch, k, n), with
// any number of batch dimensions. a and b have one type; out has that type, or float,
// or int32 for int8. Each matrix has a unit stride, and out no gaps within a row.
struct MatrixProduct {
  const at::Tensor& out;
  const at::Tensor& a;
  const at::Tensor& b;
  const at::Tensor& bias;
  float alpha = 1;
  float beta = 0;
  bool gelu = false;
};
void onednn_multiply(const MatrixProduct& product, size_t position, Stream& stream);

}  // namespace xpurt
