// Values per output channel, filled up to whole panels of a weight.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace xpurt {

int64_t panels_of(int64_t channels);

std::vector<float> scale_in_panels(const at::Tensor& scale, float factor);

// Zeros without a bias.
std::vector<float> bias_in_panels(const std::optional<at::Tensor>& bias,
                                  int64_t channels);

}  // namespace xpurt
