// aten::_efficient_attention_forward and its backward, which PyTorch implements only
// for GPUs.
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include <limits>

#include "device/device_scope.h"
#include "dispatch/composite/varlen_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::SymInt;

// Values of custom_mask_type.
enum class Causal : int64_t { no = 0, from_top_left = 1, from_bottom_right = 2 };

// The number of rows of the sums of exp(score) is a multiple of this; unused rows are
// infinity.
constexpr int64_t kSumRows = 32;
constexpr double kUnused = std::numeric_limits<double>::infinity();

// With starts_q the sequences are packed one after the other.
struct Efficient final : VarlenCall {
  template <typename... Operands>
  Efficient(const MaybeTensor& bias, int64_t mask_type, std::optional<int64_t> window,
            const Operands&... operands)
      : VarlenCall(operands...),
        bias(bias.value_or(Tensor())),
        causal(static_cast<Causal>(mask_type)),
        window(window.value_or(0)) {
    check();
  }

  const Tensor bias;
  const Causal causal;
  const int64_t window;  // number of keys up to the last causal one; 0: all

  void check() const;
  void find_sequences();

 protected:
  void mask(BandedAttention* made, int64_t i) const override;
  // (N, H, at least L), or packed (sequences, H, at least the longest).
  Tensor sums_of(const Tensor& sums, const Sequence& each, int64_t i) const override {
    return (packed() ? sums.narrow(0, i, 1) : sums).narrow(2, 0, each.queries);
  }
};

void Efficient::check() const {
  check_dropout(dropout, op);
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, op,
              ": query, key and value are (batch, length, heads, size); found ",
              query.sizes(), ", ", key.sizes(), " and ", value.sizes(),
              ". Give packed sequences a batch of 1");
  check_types();
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

void Efficient::find_sequences() {
  if (packed()) {
    sequences = packed_sequences(
        {starts_q, starts_k, used_keys, query.size(1), key.size(1)}, op);
  } else {
    sequences = {{0, query.size(1), 0, key.size(1)}};
  }
}

void Efficient::mask(BandedAttention* made, int64_t) const {
  made->bias = bias;
  if (causal == Causal::no) return;
  made->band.highest =
      causal == Causal::from_top_left ? 0 : made->keys() - made->queries();
  if (window > 0) made->band.lowest = *made->band.highest - window + 1;
}

// A seed or an offset as a tensor: PyTorch keeps the two separately, as integers.
Tensor kept_word(uint64_t word, const Tensor& like) {
  return at::scalar_tensor(static_cast<int64_t>(word), at::dtype(at::kLong))
      .to(like.device());
}

std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt> efficient_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MaybeTensor& bias, const MaybeTensor& cu_seqlens_q,
    const MaybeTensor& cu_seqlens_k, std::optional<SymInt> max_seqlen_q,
    std::optional<SymInt> max_seqlen_k, double dropout, int64_t custom_mask_type,
    bool compute_log_sumexp, std::optional<double> scale, const MaybeTensor& seqlen_k,
    std::optional<int64_t> window_size) {
  constexpr const char* op = "aten::_efficient_attention_forward";
  const DeviceScope scope(query.device().index());
  Efficient asked(bias, custom_mask_type, window_size, op, query, key, value,
                  cu_seqlens_q, cu_seqlens_k, seqlen_k, dropout, scale);
  // PyTorch's gradient formula does not pass the window on, either.
  check_no_gradient({query, key, value}, asked.used_keys.defined() || asked.window > 0,
                    op, "seqlen_k and window_size");
  asked.find_sequences();
  int64_t longest_q = asked.packed() ? 0 : query.size(1);
  int64_t longest_k = asked.packed() ? 0 : key.size(1);
  for (const Sequence& each : asked.sequences) {
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
  const DropoutState state = asked.take_dropout();
  const int64_t rows =
      compute_log_sumexp ? (longest_q + kSumRows - 1) / kSumRows * kSumRows : 0;
  const int64_t count = asked.packed() ? asked.starts_q.size(0) - 1 : query.size(0);
  const Tensor sums = at::full({count, query.size(2), rows}, kUnused,
                               query.options().dtype(at::kFloat));
  const Tensor out = asked.forward(sums);
  return {out,
          sums,
          kept_word(state.seed, query),
          kept_word(state.offset, query),
          SymInt(longest_q),
          SymInt(longest_k)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const MaybeTensor& bias, const Tensor& out, const MaybeTensor& cu_seqlens_q,
    const MaybeTensor& cu_seqlens_k, SymInt, SymInt, const Tensor& sums, double dropout,
    const Tensor& philox_seed, const Tensor& philox_offset, int64_t custom_mask_type,
    bool bias_requires_grad, std::optional<double> scale, std::optional<int64_t>,
    std::optional<int64_t> window_size, bool shared_storage_dqdkdv) {
  constexpr const char* op = "aten::_efficient_attention_backward";
  if (!grad.defined()) return {};
  const DeviceScope scope(query.device().index());
  Efficient asked(bias, custom_mask_type, window_size, op, query, key, value,
                  cu_seqlens_q, cu_seqlens_k, MaybeTensor(), dropout, scale);
  asked.find_sequences();
  if (dropout > 0) {
    asked.repeat_dropout({static_cast<uint64_t>(philox_seed.item<int64_t>()),
                          static_cast<uint64_t>(philox_offset.item<int64_t>())});
  }
  BandedGradients made =
      asked.backward(grad, out, sums, bias_requires_grad && asked.bias.defined());
  if (shared_storage_dqdkdv) {
    const Tensor together = at::stack({made.query, made.key, made.value}, 2);
    made.query = together.select(2, 0);
    made.key = together.select(2, 1);
    made.value = together.select(2, 2);
  }
  return {made.query, made.key, made.value, made.bias};
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("_efficient_attention_forward", TORCH_FN(efficient_forward));
  m.impl("_efficient_attention_backward", TORCH_FN(efficient_backward));
}

}  // namespace
}  // namespace xpurt
