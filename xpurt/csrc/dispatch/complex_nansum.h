// nansum of complex numbers, which PyTorch has on GPUs and not on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// On CPU tensors.
at::Tensor complex_nansum(const at::Tensor& self, at::OptionalIntArrayRef dims,
                          bool keepdim, std::optional<c10::ScalarType> dtype);

}  // namespace xpurt
