// A matrix product and what follows it as one primitive of oneDNN, for compiled graphs.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "onednn/activation.h"
#include "stream/stream.h"

namespace xpurt {

// activation(input @ weight + bias + other)
struct FusedProduct {
  at::Tensor input;                   // (m, k)
  at::Tensor weight;                  // (k, n), or what pack_product_weight() returned
  at::Tensor bias;                    // (n), or undefined
  at::Tensor other;                   // (m, n), or undefined
  std::vector<int64_t> weight_sizes;  // k, n
  Activation activation;

  bool is_packed() const { return weight.dim() == 1; }
  std::vector<int64_t> output_sizes() const { return {input.size(0), weight_sizes[1]}; }
  // Throws ValueError if the sizes do not match, or if a tensor is empty.
  void check() const;
};

// Whether oneDNN has a primitive that is better than its reference implementation.
bool onednn_fuses(const PhysicalDevice& device, const FusedProduct& product);

// The bytes of the weight in the layout that the primitive requires, so that a call
// does not reorder it; undefined if it is in that layout. Only if onednn_fuses().
at::Tensor pack_product_weight(const FusedProduct& product, size_t position,
                               Stream& stream);

// Writes the result to `output`, which is contiguous. Only if onednn_fuses().
void onednn_fused_product(const FusedProduct& product, const at::Tensor& output,
                          size_t position, Stream& stream);

}  // namespace xpurt
