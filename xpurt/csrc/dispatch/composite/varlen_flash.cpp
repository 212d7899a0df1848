// aten::_flash_attention_forward and related ops, which PyTorch implements only for
// GPUs.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <limits>

#include "device/device_scope.h"
#include "dispatch/composite/varlen_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::SymInt;
using MaybeSize = std::optional<SymInt>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t limit(const MaybeSize& size) {
  return size.has_value() ? size->guard_int(__FILE__, __LINE__) : -1;
}

// Paged keys are (pages, rows of a page, G, E).
struct Flash final : VarlenCall {
  // `operands`: the arguments of VarlenCall, in the op's shapes.
  template <typename... Operands>
  Flash(bool causal, const MaybeSize& left, const MaybeSize& right,
        const MaybeTensor& slopes, const MaybeTensor& pages,
        const Operands&... operands)
      : VarlenCall(operands...),
        pages(pages.value_or(Tensor())),
        slopes(slopes.value_or(Tensor())),
        causal(causal),
        left(limit(left)),
        right(limit(right)) {
    check();
    if (!packed()) gradients_format = at::MemoryFormat::Contiguous;
    for (Tensor* each : {&query, &key, &value}) {
      if (packed() && each->dim() == 3) *each = each->unsqueeze(0);
    }
  }

  const Tensor pages, slopes;
  const bool causal;
  const int64_t left, right;  // -1: without a limit

  void check() const;
  void find_sequences();
  // Output and sums.
  std::pair<Tensor, Tensor> run() const;

 protected:
  void mask(BandedAttention* made, int64_t i) const override;
  Tensor keys_of(const Tensor& tensor, const Sequence& each, int64_t i) const override;
  // (N, H, L), or packed (H, rows).
  Tensor sums_of(const Tensor& sums, const Sequence& each, int64_t) const override {
    if (!packed()) return sums;
    return sums.narrow(1, each.query, each.queries).unsqueeze(0);
  }
};

// Checks tensors in the op's shapes: packed ones have no batch dimension.
void Flash::check() const {
  check_dropout(dropout, op);
  const int64_t dims = packed() ? 3 : 4;
  const int64_t key_dims = pages.defined() ? 4 : dims;
  TORCH_CHECK(query.dim() == dims && key.dim() == key_dims && value.dim() == key_dims,
              op, ": expected query of ", dims, " dimensions and key and value of ",
              key_dims, "; found ", query.dim(), ", ", key.dim(), " and ", value.dim(),
              ". Dense tensors are (batch, length, heads, size), those with cum_seq_q "
              "(rows, heads, size)");
  check_types();
  TORCH_CHECK(
      key.sizes().slice(0, key_dims - 1) == value.sizes().slice(0, key_dims - 1) &&
          key.size(-1) == query.size(-1) && key.size(-2) > 0 &&
          query.size(-2) % key.size(-2) == 0 &&
          (packed() || query.size(0) == key.size(0)),
      op, ": the shapes of query ", query.sizes(), ", key ", key.sizes(), " and value ",
      value.sizes(),
      " don't fit. They have one batch and size, and the heads of query are "
      "a multiple of those of key and value");
  TORCH_CHECK(packed() || (!used_keys.defined() && !pages.defined()), op,
              ": seqused_k and block_table are for packed tensors. Give cum_seq_q");
  TORCH_CHECK(!pages.defined() || used_keys.defined(), op,
              ": block_table was given without seqused_k. Give both");
}

void Flash::find_sequences() {
  if (packed()) {
    Packing packing{starts_q,      starts_k,    used_keys,
                    query.size(1), key.size(1), pages.defined()};
    if (packing.paged) packing.rows_k *= pages.size(1);
    sequences = packed_sequences(packing, op);
  } else {
    sequences = {{0, query.size(1), 0, key.size(1)}};
  }
}

Tensor Flash::keys_of(const Tensor& tensor, const Sequence& each, int64_t i) const {
  if (!pages.defined()) return VarlenCall::keys_of(tensor, each, i);
  const int64_t of_page = tensor.size(1);
  const int64_t count = (each.keys + of_page - 1) / of_page;
  return tensor.index_select(0, pages.select(0, i).narrow(0, 0, count))
      .flatten(0, 1)
      .narrow(0, 0, each.keys)
      .transpose(0, 1)
      .unsqueeze(0);
}

// The limits of the window are relative to the lower right corner of the scores.
void Flash::mask(BandedAttention* made, int64_t i) const {
  const int64_t corner = made->keys() - made->queries();
  const int64_t last = causal ? 0 : right;
  if (last >= 0) made->band.highest = corner + last;
  if (left >= 0) made->band.lowest = corner - left;
  if (!slopes.defined()) return;
  const auto type = slopes.options().dtype(at::kFloat);
  const Tensor distance = at::arange(made->keys(), type)
                              .sub(at::arange(made->queries(), type).unsqueeze(1))
                              .sub(corner)
                              .abs();
  Tensor each = slopes;  // (H) or (N, H)
  if (each.dim() == 2 && packed()) each = each.narrow(0, i, 1);
  made->bias = each.to(at::kFloat).neg().unsqueeze(-1).unsqueeze(-1) * distance;
}

// As in FlashAttention, the sum of a query that attends to no key is infinity.
std::pair<Tensor, Tensor> Flash::run() const {
  const auto options = query.options().dtype(at::kFloat);
  const int64_t rows = query.size(1), heads = query.size(2);
  Tensor sums = packed() ? at::full({heads, rows}, kInfinity, options)
                         : at::empty({query.size(0), heads, rows}, options);
  const Tensor out = forward(sums);
  sums.masked_fill_(sums.eq(-kInfinity), kInfinity);
  return {packed() ? out.squeeze(0) : out, sums};
}

// Seed and offset in the form of CUDA's generator state; zeros if nothing was drawn.
Tensor kept_state(const DropoutState& state, const Tensor& like) {
  return at::tensor(
             {static_cast<int64_t>(state.seed), static_cast<int64_t>(state.offset)},
             at::dtype(at::kLong))
      .to(like.device())
      .view(at::kUInt64);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MaybeTensor& cum_seq_q, const MaybeTensor& cum_seq_k, SymInt, SymInt,
    double dropout, bool causal, bool return_debug_mask, std::optional<double> scale,
    MaybeSize left, MaybeSize right, const MaybeTensor& used_keys,
    const MaybeTensor& alibi_slopes, const MaybeTensor& block_table,
    std::optional<int64_t>) {
  constexpr const char* op = "aten::_flash_attention_forward";
  TORCH_CHECK_NOT_IMPLEMENTED(
      !return_debug_mask, op,
      ": xpu has no debug mask of dropout. Call it with return_debug_mask=False");
  const DeviceScope scope(query.device().index());
  Flash flash(causal, left, right, alibi_slopes, block_table, op, query, key, value,
              cum_seq_q, cum_seq_k, used_keys, dropout, scale);
  check_no_gradient(
      {query, key, value},
      flash.used_keys.defined() || flash.pages.defined() || flash.slopes.defined(), op,
      "seqused_k, block_table and alibi_slopes");
  flash.find_sequences();
  const DropoutState state = flash.take_dropout();
  const auto [out, sums] = flash.run();
  return {out, sums, kept_state(state, query),
          at::zeros({}, query.options().dtype(at::kLong)).view(at::kUInt64),
          at::empty({0}, query.options())};
}

// For varlen_attn_out: writes to the caller's tensor.
Tensor flash_forward_into(Tensor& out, const Tensor& query, const Tensor& key,
                          const Tensor& value, const MaybeTensor& cum_seq_q,
                          const MaybeTensor& cum_seq_k, SymInt, SymInt, double dropout,
                          bool causal, bool return_debug_mask,
                          std::optional<double> scale, MaybeSize left, MaybeSize right,
                          const MaybeTensor& used_keys, const MaybeTensor& alibi_slopes,
                          const MaybeTensor& block_table, std::optional<int64_t>) {
  constexpr const char* op = "aten::_flash_attention_forward_no_dropout_inplace";
  TORCH_CHECK(dropout == 0 && !return_debug_mask, op,
              ": it has neither dropout nor a debug mask; found dropout_p ", dropout,
              ". Use _flash_attention_forward for dropout");
  const DeviceScope scope(query.device().index());
  Flash flash(causal, left, right, alibi_slopes, block_table, op, query, key, value,
              cum_seq_q, cum_seq_k, used_keys, dropout, scale);
  flash.find_sequences();
  const auto [made, sums] = flash.run();
  TORCH_CHECK(out.sizes() == made.sizes() && out.scalar_type() == query.scalar_type(),
              op, ": out is ", made.sizes(), " of ", query.scalar_type(), "; found ",
              out.sizes(), " of ", out.scalar_type(),
              ". Make it with torch.empty_like(query)");
  out.copy_(made);
  return sums;
}

DropoutState state_of(const Tensor& kept) {
  const Tensor host = kept.view(at::kLong).to(at::kCPU);
  const auto* words = host.const_data_ptr<int64_t>();
  return {static_cast<uint64_t>(words[0]), static_cast<uint64_t>(words[1])};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& sums, const Tensor& cum_seq_q,
    const Tensor& cum_seq_k, SymInt, SymInt, double dropout, bool causal,
    const Tensor& rng_state, const Tensor&, std::optional<double> scale, MaybeSize left,
    MaybeSize right) {
  constexpr const char* op = "aten::_flash_attention_backward";
  const MaybeTensor none;
  const DeviceScope scope(query.device().index());
  Flash flash(causal, left, right, none, none, op, query, key, value, cum_seq_q,
              cum_seq_k, none, dropout, scale);
  flash.find_sequences();
  if (dropout > 0) flash.repeat_dropout(state_of(rng_state));
  const auto as_rows = [&](const Tensor& tensor) {
    return flash.packed() ? tensor.unsqueeze(0) : tensor;
  };
  const BandedGradients made =
      flash.backward(as_rows(grad), as_rows(out), sums, /*wants_bias=*/false);
  if (!flash.packed()) return {made.query, made.key, made.value};
  return {made.query.squeeze(0), made.key.squeeze(0), made.value.squeeze(0)};
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("_flash_attention_forward", TORCH_FN(flash_forward));
  m.impl("_flash_attention_forward_no_dropout_inplace", TORCH_FN(flash_forward_into));
  m.impl("_flash_attention_backward", TORCH_FN(flash_backward));
}

}  // namespace
}  // namespace xpurt
