// Scaled dot product attention in blocks: no device holds the scores of all queries and
// keys at the same time.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string>

#include "rows/launch.h"
#include "stream/stream.h"

namespace xpurt {

// Query (N, H, L, E), key and value (N, H, S, E), of one floating type.
struct Attention {
  at::Tensor query, key, value;
  at::Tensor mask;  // added to the scores, or undefined; (N, H, L, S), expanded
  bool causal = false;
  double scale = 1;
  int row = 0;  // number of the row, for kernel keys

  int64_t batch() const { return query.size(0); }
  int64_t heads() const { return query.size(1); }
  int64_t queries() const { return query.size(2); }
  int64_t keys() const { return key.size(2); }
  int64_t size() const { return query.size(3); }
};

// Results of the forward pass.
struct Attended {
  at::Tensor out;   // (N, H, L, E)
  at::Tensor sums;  // (N, H, L): logarithms of the sums of exp(score)
};

using AttentionGradients = std::array<at::Tensor, 3>;  // of query, key and value

// Further inputs of the backward pass.
struct AttentionBackward {
  at::Tensor grad;  // of out
  at::Tensor sums;  // from the forward pass
  at::Tensor out;
};

// By xpurt's kernels, on any device with enough local memory.
bool attention_fits_tiles(const Attention& attention, const PhysicalDevice& device);
void attend_by_tiles(const Attention& attention, const Attended& made, size_t position);
void attend_backward_by_tiles(const Attention& attention,
                              const AttentionBackward& backward,
                              const AttentionGradients& made, size_t position);

// By matrix products of oneDNN, with xpurt's kernels between them. Requires that oneDNN
// multiplies the type on the device.
void attend_by_products(const Attention& attention, const Attended& made,
                        size_t position);
void attend_backward_by_products(const Attention& attention,
                                 const AttentionBackward& backward,
                                 const AttentionGradients& made, size_t position);

// By xpurt::panel_attention and its backward on the host, in its turn on the stream.
// Requires that its products take less time than others there: see
// functional/attention.py.
bool attention_fits_panels(const Attention& attention, bool backward,
                           const PhysicalDevice& device);
Attended attend_by_panels(const Attention& attention);
AttentionGradients attend_backward_by_panels(const Attention& attention,
                                             const AttentionBackward& backward);

// The structure argument of the attention kernels; matches the template.
struct AttentionLayout {
  int64_t batch, heads, queries, keys, first = 0;
  std::array<int64_t, 4> query{}, key{}, value{}, out{}, grad{}, mask{};
  std::array<int64_t, 3> sums{};

  explicit AttentionLayout(const Attention& attention);
};
std::array<int64_t, 4> four_strides(const at::Tensor& tensor);
std::array<int64_t, 3> three_strides(const at::Tensor& tensor);

// Key of the kernel for operands like these.
std::string attention_key(const Attention& attention, const char* template_name);

}  // namespace xpurt
