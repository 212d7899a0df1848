// Between lazy tensors and the xpu tensors that have their values.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// A lazy tensor with the value of an xpu tensor, and no copy of it: graphs read its
// memory, and write to none. Who changes the xpu tensor has to run the graphs before.
at::Tensor lazy_over(const at::Tensor& xpu);

// The value of a lazy tensor: runs its graph if need be. Nobody may write to it.
at::Tensor xpu_value(const at::Tensor& lazy);

}  // namespace xpurt
