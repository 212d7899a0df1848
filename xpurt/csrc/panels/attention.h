// Scaled dot product attention by products of panels.
#pragma once

#include "lanes/kernels.h"

namespace xpurt {

// Rows of a batch of heads of tokens, each of adjacent values.
template <typename Float>
struct TokenRows {
  Float* row(int64_t of_batch, int64_t of_head, int64_t of_token) const {
    return first + of_batch * batch + of_head * head + of_token * token;
  }

  Float* first;
  int64_t batch, head, token;  // strides
};

// The same, of floats or of bfloat16.
template <typename Void>
struct StoredRows {
  int64_t at(int64_t of_batch, int64_t of_head, int64_t of_token) const {
    return of_batch * batch + of_head * head + of_token * token;
  }

  Void* first;
  int64_t batch, head, token;  // strides
  bool narrow;                 // whether it is bfloat16
};

struct PanelAttention {
  int64_t batches, heads, queries, keys, size;
  StoredRows<const void> query, key, value;
  TokenRows<const float> mask;  // of a query: what is added to its scores; or null
  int64_t mask_key;             // stride
  bool causal;                  // query i has the keys up to i
  float scale;
};

// Writes the results, and the logarithms of the sums of exp(score). The scores of a
// block of queries and keys exist at a time (Dao and others, FlashAttention, 2022). A
// query without keys gets zeros, as by PyTorch's kernel. bfloat16 is computed as floats
// and rounded in the end. Runs on PyTorch's threads.
void attend_by_panels(const Kernels& kernels, const PanelAttention& attention,
                      const StoredRows<void>& out, const TokenRows<float>& sums);

}  // namespace xpurt
