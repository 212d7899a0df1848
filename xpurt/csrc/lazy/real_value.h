// Between lazy tensors and the tensors that have their values.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// A lazy tensor with the value of an xpu tensor, and no copy of it: graphs read its
// memory, and write to none. Who changes the xpu tensor has to run the graphs before.
at::Tensor lazy_over(const at::Tensor& xpu);

// The value of a lazy tensor, on its real device: runs its graph if need be. Nobody may
// write to it.
at::Tensor real_value(const at::Tensor& lazy);

// For a Python tensor that stands for a lazy one: it has no memory, so no ordinary
// tensor can take its place by `ordinary.data = wrapper`. PyTorch refuses it then, and
// modules that are moved get new parameters.
void refuse_as_data(const at::Tensor& wrapper);

}  // namespace xpurt
