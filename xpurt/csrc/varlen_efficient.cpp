// aten::_efficient_attention_forward and its backward, which PyTorch has for GPUs
// alone.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "device_scope.h"
#include "varlen_attention.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::SymInt;

// Of custom_mask_type.
enum class Causal : int64_t { no = 0, from_top_left = 1, from_bottom_right = 2 };

// Sums of exp(score) have rows in multiples of this; the rest is infinity.
constexpr int64_t kSumRows = 32;
constexpr double kUnused = std::numeric_limits<double>::infinity();

// Query (N, L, H, E), key (N, S, H, E), value (N, S, H, V); with starts_q N is 1, and
// the sequences follow each other.
struct Efficient {
  const char* op;
  Tensor query, key, value, bias;
  Tensor starts_q, starts_k, used_keys;
  double dropout = 0;
  double scale = 1;
  Causal causal = Causal::no;
  int64_t window = 0;  // keys up to the causal one; 0: all
  std::optional<at::Generator> generator;

  bool packed() const { return starts_q.defined(); }
  int64_t count() const { return packed() ? starts_q.size(0) - 1 : query.size(0); }
  void check() const;
  std::vector<Sequence> sequences() const;
  BandedAttention of(const Sequence& each) const;
};

void Efficient::check() const {
  check_dropout(dropout, op);
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, op,
              ": query, key and value are (batch, length, heads, size); found ",
              query.sizes(), ", ", key.sizes(), " and ", value.sizes(),
              ". Give packed sequences a batch of 1");
  TORCH_CHECK(at::isFloatingType(query.scalar_type()) &&
                  query.scalar_type() == key.scalar_type() &&
                  query.scalar_type() == value.scalar_type(),
              op, ": query, key and value are of one floating type; found ",
              query.scalar_type(), ", ", key.scalar_type(), " and ",
              value.scalar_type(), ". Convert them with .to()");
  TORCH_CHECK(query.size(0) == key.size(0) && query.size(2) == key.size(2) &&
                  query.size(3) == key.size(3) &&
                  key.sizes().slice(0, 3) == value.sizes().slice(0, 3),
              op, ": the shapes of query ", query.sizes(), ", key ", key.sizes(),
              " and value ", value.sizes(),
              " don't fit. Batch, heads and size are the same; repeat shared heads "
              "with repeat_interleave");
  TORCH_CHECK(causal >= Causal::no && causal <= Causal::from_bottom_right, op,
              ": custom_mask_type is 0 (none), 1 (causal from the top left) or 2 "
              "(causal from the bottom right); found ",
              static_cast<int64_t>(causal));
  TORCH_CHECK(window == 0 || (window > 0 && causal != Causal::no), op,
              ": a window_size of ", window,
              " is for causal masks. Give custom_mask_type 1 or 2");
  if (!packed()) {
    TORCH_CHECK(!starts_k.defined() && !used_keys.defined(), op,
                ": cu_seqlens_k and seqlen_k are for packed sequences. Give "
                "cu_seqlens_q, too");
    return;
  }
  TORCH_CHECK(query.size(0) == 1, op, ": packed sequences have a batch of 1; found ",
              query.size(0));
  TORCH_CHECK_NOT_IMPLEMENTED(
      !bias.defined(), op,
      ": a bias is for dense tensors, not for cu_seqlens_q. Call "
      "it for each sequence");
}

std::vector<Sequence> Efficient::sequences() const {
  if (!packed()) return {{0, query.size(1), 0, key.size(1)}};
  return packed_sequences({starts_q, starts_k, used_keys, query.size(1), key.size(1)},
                          op);
}

BandedAttention Efficient::of(const Sequence& each) const {
  BandedAttention made;
  made.query = query.narrow(1, each.query, each.queries).transpose(1, 2);
  made.key = key.narrow(1, each.key, each.keys).transpose(1, 2);
  made.value = value.narrow(1, each.key, each.keys).transpose(1, 2);
  made.bias = bias;
  if (causal != Causal::no) {
    made.band.highest = causal == Causal::from_top_left ? 0 : each.keys - each.queries;
    if (window > 0) made.band.lowest = *made.band.highest - window + 1;
  }
  made.scale = scale;
  made.dropout = dropout;
  made.generator = generator;
  return made;
}

// PyTorch keeps seed and offset apart, as integers.
Tensor kept_word(uint64_t word, const Tensor& like) {
  return at::scalar_tensor(static_cast<int64_t>(word), at::dtype(at::kLong))
      .to(like.device());
}

Tensor some(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? *tensor : Tensor();
}

std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt> efficient_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const std::optional<Tensor>& bias, const std::optional<Tensor>& cu_seqlens_q,
    const std::optional<Tensor>& cu_seqlens_k, std::optional<SymInt> max_seqlen_q,
    std::optional<SymInt> max_seqlen_k, double dropout, int64_t custom_mask_type,
    bool compute_log_sumexp, std::optional<double> scale,
    const std::optional<Tensor>& seqlen_k, std::optional<int64_t> window_size) {
  constexpr const char* op = "aten::_efficient_attention_forward";
  const c10::Device device = query.device();
  const DeviceScope scope(device.index());
  Efficient asked{op,
                  query,
                  key,
                  value,
                  some(bias),
                  some(cu_seqlens_q),
                  some(cu_seqlens_k),
                  some(seqlen_k),
                  dropout,
                  scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1)))),
                  static_cast<Causal>(custom_mask_type),
                  window_size.value_or(0),
                  {}};
  asked.check();
  // PyTorch's formula does not pass the window on, either.
  check_no_gradient({query, key, value}, asked.used_keys.defined() || asked.window > 0,
                    op, "seqlen_k and window_size");
  const std::vector<Sequence> sequences = asked.sequences();
  int64_t longest_q = asked.packed() ? 0 : query.size(1);
  int64_t longest_k = asked.packed() ? 0 : key.size(1);
  for (const Sequence& each : sequences) {
    longest_q = std::max(longest_q, each.queries);
    longest_k = std::max(longest_k, each.keys);
  }
  if (asked.packed() && max_seqlen_q.has_value()) {
    const int64_t most = max_seqlen_q->guard_int(__FILE__, __LINE__);
    TORCH_CHECK(most >= longest_q, op, ": max_seqlen_q is ", most,
                ", and cu_seqlens_q has a sequence of ", longest_q,
                ". Give the length of the longest");
    longest_q = most;
  }
  if (max_seqlen_k.has_value()) longest_k = max_seqlen_k->guard_int(__FILE__, __LINE__);
  DropoutState state;
  if (dropout > 0) {
    state =
        DropoutState::take(device.index(), static_cast<int64_t>(sequences.size()), op);
    asked.generator = state.generator(device.index());
  }
  const int64_t heads = query.size(2);
  const Tensor out =
      at::zeros({query.size(0), query.size(1), heads, value.size(3)}, query.options());
  const int64_t rows =
      compute_log_sumexp ? (longest_q + kSumRows - 1) / kSumRows * kSumRows : 0;
  const Tensor sums = at::full({asked.count(), heads, rows}, kUnused,
                               query.options().dtype(at::kFloat));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& each = sequences[i];
    if (each.queries == 0) continue;
    const BandedResult made = attend_banded(asked.of(each));
    out.narrow(1, each.query, each.queries).copy_(made.out.transpose(1, 2));
    if (!compute_log_sumexp) continue;
    const Tensor place =
        asked.packed() ? sums.narrow(0, static_cast<int64_t>(i), 1) : sums;
    place.narrow(2, 0, each.queries).copy_(made.sums);
  }
  return {out,
          sums,
          kept_word(state.seed, query),
          kept_word(state.offset, query),
          SymInt(longest_q),
          SymInt(longest_k)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const std::optional<Tensor>& bias, const Tensor& out,
    const std::optional<Tensor>& cu_seqlens_q,
    const std::optional<Tensor>& cu_seqlens_k, SymInt, SymInt, const Tensor& sums,
    double dropout, const Tensor& philox_seed, const Tensor& philox_offset,
    int64_t custom_mask_type, bool bias_requires_grad, std::optional<double> scale,
    std::optional<int64_t>, std::optional<int64_t> window_size,
    bool shared_storage_dqdkdv) {
  constexpr const char* op = "aten::_efficient_attention_backward";
  if (!grad.defined()) return {};
  const c10::Device device = query.device();
  const DeviceScope scope(device.index());
  Efficient asked{op,
                  query,
                  key,
                  value,
                  some(bias),
                  some(cu_seqlens_q),
                  some(cu_seqlens_k),
                  {},
                  dropout,
                  scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1)))),
                  static_cast<Causal>(custom_mask_type),
                  window_size.value_or(0),
                  {}};
  asked.check();
  if (dropout > 0) {
    const DropoutState state{static_cast<uint64_t>(philox_seed.item<int64_t>()),
                             static_cast<uint64_t>(philox_offset.item<int64_t>())};
    asked.generator = state.generator(device.index());
  }
  const bool wants_bias = bias_requires_grad && asked.bias.defined();
  Tensor query_grad = at::zeros_like(query), key_grad = at::zeros_like(key),
         value_grad = at::zeros_like(value), bias_grad;
  const std::vector<Sequence> sequences = asked.sequences();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& each = sequences[i];
    if (each.queries == 0) continue;
    const auto rows = [&](const Tensor& tensor) {
      return tensor.narrow(1, each.query, each.queries).transpose(1, 2);
    };
    Tensor own;
    if (sums.defined() && sums.numel() > 0) {
      own = (asked.packed() ? sums.narrow(0, static_cast<int64_t>(i), 1) : sums)
                .narrow(2, 0, each.queries);
    }
    const BandedGradients made =
        attend_banded_backward(asked.of(each), rows(grad), rows(out), own, wants_bias);
    query_grad.narrow(1, each.query, each.queries).copy_(made.query.transpose(1, 2));
    key_grad.narrow(1, each.key, each.keys).copy_(made.key.transpose(1, 2));
    value_grad.narrow(1, each.key, each.keys).copy_(made.value.transpose(1, 2));
    bias_grad = made.bias;
  }
  if (shared_storage_dqdkdv) {
    const Tensor together = at::stack({query_grad, key_grad, value_grad}, 2);
    query_grad = together.select(2, 0);
    key_grad = together.select(2, 1);
    value_grad = together.select(2, 2);
  }
  return {query_grad, key_grad, value_grad, bias_grad};
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("_efficient_attention_forward", TORCH_FN(efficient_forward));
  m.impl("_efficient_attention_backward", TORCH_FN(efficient_backward));
}

}  // namespace
}  // namespace xpurt
