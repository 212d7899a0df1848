// A converted tensor as a function of what it was made from.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// `made`, a conversion of `source` to another type or layout, with a gradient, which is
// contiguous where the source is.
at::Tensor differentiable(const at::Tensor& source, const at::Tensor& made);

}  // namespace xpurt
