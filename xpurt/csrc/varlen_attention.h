// Attention as the ops of GPUs have it: sequences of different lengths in one tensor,
// windows, grouped heads, dropout.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace xpurt {

// The keys that a query sees: key j of query i if i + lowest <= j <= i + highest.
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
  std::optional<at::Generator> generator;  // that dropout draws from

  int64_t queries() const { return query.size(2); }
  int64_t keys() const { return key.size(2); }
};

// `sums` (N, H, L) is float: logarithms of the sums of exp(score), -infinity where a
// query sees no key; its result is 0.
struct BandedResult {
  at::Tensor out, sums;
};
BandedResult attend_banded(const BandedAttention& asked);

// `bias` is undefined unless it is wanted. `sums` may be undefined or empty.
struct BandedGradients {
  at::Tensor query, key, value, bias;
};
BandedGradients attend_banded_backward(const BandedAttention& asked,
                                       const at::Tensor& grad, const at::Tensor& out,
                                       const at::Tensor& sums, bool wants_bias);

// One sequence of a batch that is packed into one tensor: rows of queries and keys.
struct Sequence {
  int64_t query, queries, key, keys;
};

// From positions at which sequences begin, and the last one's end; read on the host.
// `used_keys`, if it is defined, has the number of keys that take part. `paged`: keys
// are not packed, and `starts_k` may be undefined. Raises an error that names `op`.
struct Packing {
  at::Tensor starts_q, starts_k, used_keys;
  int64_t rows_q = 0, rows_k = 0;
  bool paged = false;
};
std::vector<Sequence> packed_sequences(const Packing& packing, const char* op);

// Where dropout of one call draws from, so that its backward can draw it again.
struct DropoutState {
  uint64_t seed = 0;
  uint64_t offset = 0;

  // The next state of the device's generator, for so many draws.
  static DropoutState take(c10::DeviceIndex index, int64_t draws, const char* op);
  at::Generator generator(c10::DeviceIndex index) const;
};

void check_dropout(double dropout, const char* op);

// For arguments that the op's backward is not given: its gradients would be wrong.
void check_no_gradient(std::initializer_list<at::Tensor> operands, bool given,
                       const char* op, const char* arguments);

}  // namespace xpurt
