// A matrix product and what follows it as one primitive of oneDNN, for compiled graphs.
#pragma once

#include <vector>

#include "onednn/fused_operands.h"
#include "stream/stream.h"

namespace xpurt {

// Note [Distances of matrices]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A kernel that reads or writes an element of each matrix of a batch at a time is slow
// if their distance is a multiple of 4096 bytes: these elements are in one set of the
// processor's cache. So the result has 64 bytes between its matrices. A kernel that
// wrote 36 matrices of 256x64 took 1.7 ms instead of 2.5 (float32, one thread of an AMD
// EPYC, 2026-11-25).

// activation(input @ weight + bias + other): (m, k), (k, n), (n) and (m, n); or
// products of a batch alone: (b, m, k) and (b, k, n).
struct FusedProduct : FusedOperands {
  bool is_batched() const { return weight_sizes.size() == 3; }
  std::vector<int64_t> output_sizes() const;
  int64_t multiply_adds() const { return input.numel() * weight_sizes.back(); }
  // See Note [Distances of matrices].
  int64_t output_distance() const;  // in elements; 0 for a single product
  at::Tensor empty_output() const;
  // Throws ValueError if the sizes do not match, or if a tensor is empty.
  void check() const;
};

// Whether oneDNN has a primitive that is better than its reference implementation.
bool onednn_fuses(const PhysicalDevice& device, const FusedProduct& product);

// The bytes of the weight in the layout that the primitive requires, so that a call
// does not reorder it; undefined if it is in that layout. Only if onednn_fuses().
at::Tensor pack_weight(const FusedProduct& product, size_t position, Stream& stream);

// Writes the result to `output`, as empty_output() made it. Only if onednn_fuses().
void onednn_fused(const FusedProduct& product, const at::Tensor& output,
                  size_t position, Stream& stream);

}  // namespace xpurt
