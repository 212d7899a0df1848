// Attention with windows, grouped heads and dropout, as in PyTorch's ops for GPUs.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// The keys that a query attends to: query i attends to key j if
// i + lowest <= j <= i + highest.
struct Band {
  std::optional<int64_t> lowest, highest;
};

// Query (N, H, L, E), key (N, G, S, E) and value (N, G, S, V), where H is a multiple of
// G: each head of the keys is shared by H / G heads of queries.
struct BandedAttention {
  at::Tensor query, key, value;
  at::Tensor bias;  // added to the scores, or undefined; expands to (N, H, L, S)
  Band band;
  double scale = 1;
  double dropout = 0;
  std::optional<at::Generator> generator;  // of dropout

  int64_t queries() const { return query.size(2); }
  int64_t keys() const { return key.size(2); }
};

// `sums` (N, H, L) is float: logarithms of the sums of exp(score). For a query that
// attends to no key it is -infinity, and the output is 0.
struct BandedResult {
  at::Tensor out, sums;
};
BandedResult attend_banded(const BandedAttention& asked);

// `bias` is undefined unless `wants_bias`. `sums` may be undefined or empty.
struct BandedGradients {
  at::Tensor query, key, value, bias;
};
BandedGradients attend_banded_backward(const BandedAttention& asked,
                                       const at::Tensor& grad, const at::Tensor& out,
                                       const at::Tensor& sums, bool wants_bias);

}  // namespace xpurt
