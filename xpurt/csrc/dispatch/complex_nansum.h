// nansum of complex numbers, which PyTorch implements on GPUs but not on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// For CPU tensors.
at::Tensor complex_nansum(const at::Tensor& self, at::OptionalIntArrayRef dims,
                          bool keepdim, std::optional<c10::ScalarType> dtype);

}  // namespace xpurt
