// The operands of primitives of compiled graphs. What follows the primitive in the
// graph is computed with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "onednn/activation.h"

namespace xpurt {

// activation(input (*) weight + bias + other), where (*) is a product or a convolution.
struct FusedOperands {
  at::Tensor input;
  at::Tensor weight;  // of weight_sizes, or its bytes in the primitive's layout
  at::Tensor bias;    // or undefined
  at::Tensor other;   // of the result's sizes, or undefined
  std::vector<int64_t> weight_sizes;
  Activation activation;

  bool is_packed() const { return weight.dim() == 1; }

  // Throws ValueError for a weight, packed or not, that can't be of weight_sizes, and
  // for a bias that is not of the result's channels.
  void check_sizes(int64_t channels) const;

  // Throws ValueError for `other` of other sizes than the result.
  void check_other(at::IntArrayRef result) const;
};

}  // namespace xpurt
