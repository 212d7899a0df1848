// aten::_flash_attention_forward and its kin, which PyTorch has for GPUs alone.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
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
using MaybeTensor = std::optional<Tensor>;
using MaybeSize = std::optional<SymInt>;

Tensor or_none(const MaybeTensor& tensor) {
  return tensor.has_value() ? *tensor : Tensor();
}

// One call, forward or backward. Dense tensors are (N, L, H, E), packed ones
// (rows, H, E), paged keys (pages, rows of a page, G, E).
struct Flash {
  const char* op;
  Tensor query, key, value;
  Tensor starts_q, starts_k, used_keys, pages, slopes;
  double dropout = 0;
  double scale = 1;
  bool causal = false;
  int64_t left = -1, right = -1;  // -1: without a limit
  std::optional<at::Generator> generator;

  bool packed() const { return starts_q.defined(); }
  void check() const;
  std::vector<Sequence> sequences() const;
  int64_t draws() const { return packed() ? starts_q.size(0) - 1 : 1; }

  // Keys, or values, of sequence `i`: (rows, G, E).
  Tensor rows_of(const Tensor& tensor, const Sequence& each, int64_t i) const;
  BandedAttention all() const;
  BandedAttention of(const Sequence& each, int64_t i) const;
  void complete(BandedAttention* made, int64_t i) const;
};

void Flash::check() const {
  check_dropout(dropout, op);
  const int64_t dims = packed() ? 3 : 4;
  const int64_t key_dims = pages.defined() ? 4 : dims;
  TORCH_CHECK(query.dim() == dims && key.dim() == key_dims && value.dim() == key_dims,
              op, ": expected query of ", dims, " dimensions and key and value of ",
              key_dims, "; found ", query.dim(), ", ", key.dim(), " and ", value.dim(),
              ". Dense tensors are (batch, length, heads, size), those with cum_seq_q "
              "(rows, heads, size)");
  TORCH_CHECK(at::isFloatingType(query.scalar_type()) &&
                  query.scalar_type() == key.scalar_type() &&
                  query.scalar_type() == value.scalar_type(),
              op, ": query, key and value are of one floating type; found ",
              query.scalar_type(), ", ", key.scalar_type(), " and ",
              value.scalar_type(), ". Convert them with .to()");
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

std::vector<Sequence> Flash::sequences() const {
  Packing packing{starts_q,      starts_k,    used_keys,
                  query.size(0), key.size(0), pages.defined()};
  if (packing.paged) packing.rows_k = pages.size(1) * key.size(1);
  return packed_sequences(packing, op);
}

Tensor Flash::rows_of(const Tensor& tensor, const Sequence& each, int64_t i) const {
  if (!pages.defined()) return tensor.narrow(0, each.key, each.keys);
  const int64_t of_page = tensor.size(1);
  const int64_t count = (each.keys + of_page - 1) / of_page;
  return tensor.index_select(0, pages.select(0, i).narrow(0, 0, count))
      .flatten(0, 1)
      .narrow(0, 0, each.keys);
}

// The limits count from the lower right corner of the scores.
void Flash::complete(BandedAttention* made, int64_t i) const {
  const int64_t corner = made->keys() - made->queries();
  const int64_t last = causal ? 0 : right;
  if (last >= 0) made->band.highest = corner + last;
  if (left >= 0) made->band.lowest = corner - left;
  made->scale = scale;
  made->dropout = dropout;
  made->generator = generator;
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

BandedAttention Flash::all() const {
  BandedAttention made;
  made.query = query.transpose(1, 2);
  made.key = key.transpose(1, 2);
  made.value = value.transpose(1, 2);
  complete(&made, 0);
  return made;
}

Tensor with_batch(const Tensor& rows) {
  return rows.transpose(0, 1).unsqueeze(0);
}
Tensor without_batch(const Tensor& heads) {
  return heads.squeeze(0).transpose(0, 1);
}

BandedAttention Flash::of(const Sequence& each, int64_t i) const {
  BandedAttention made;
  made.query = with_batch(query.narrow(0, each.query, each.queries));
  made.key = with_batch(rows_of(key, each, i));
  made.value = with_batch(rows_of(value, each, i));
  complete(&made, i);
  return made;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As FlashAttention has it: infinity where no key is seen.
Tensor flash_sums(const Tensor& sums) {
  return sums.masked_fill(sums.eq(-kInfinity), kInfinity);
}

struct FlashResult {
  Tensor out, sums;
};

FlashResult run_forward(const Flash& flash) {
  if (!flash.packed()) {
    const BandedResult made = attend_banded(flash.all());
    return {made.out.transpose(1, 2).contiguous(), flash_sums(made.sums).contiguous()};
  }
  const Tensor& query = flash.query;
  auto shape = query.sizes().vec();
  shape.back() = flash.value.size(-1);
  FlashResult result{at::zeros(shape, query.options()),
                     at::full({query.size(1), query.size(0)}, kInfinity,
                              query.options().dtype(at::kFloat))};
  int64_t i = 0;
  for (const Sequence& each : flash.sequences()) {
    const int64_t at = i++;
    if (each.queries == 0) continue;
    const BandedResult made = attend_banded(flash.of(each, at));
    result.out.narrow(0, each.query, each.queries).copy_(without_batch(made.out));
    result.sums.narrow(1, each.query, each.queries)
        .copy_(flash_sums(made.sums.squeeze(0)));
  }
  return result;
}

double scale_of(std::optional<double> scale, const Tensor& query) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
}

int64_t limit(const MaybeSize& size) {
  return size.has_value() ? size->guard_int(__FILE__, __LINE__) : -1;
}

// Seed and offset, as CUDA's generator gives them; zeros if nothing was drawn.
Tensor kept_state(const std::optional<DropoutState>& state, const Tensor& like) {
  const auto type = at::dtype(at::kLong);
  Tensor made = at::zeros({2}, type);
  if (state.has_value()) {
    made = at::tensor(
        {static_cast<int64_t>(state->seed), static_cast<int64_t>(state->offset)}, type);
  }
  return made.to(like.device()).view(at::kUInt64);
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
  Flash flash{op,
              query,
              key,
              value,
              or_none(cum_seq_q),
              or_none(cum_seq_k),
              or_none(used_keys),
              or_none(block_table),
              or_none(alibi_slopes),
              dropout,
              scale_of(scale, query),
              causal,
              limit(left),
              limit(right),
              {}};
  flash.check();
  check_no_gradient(
      {query, key, value},
      flash.used_keys.defined() || flash.pages.defined() || flash.slopes.defined(), op,
      "seqused_k, block_table and alibi_slopes");
  std::optional<DropoutState> state;
  if (dropout > 0) {
    state = DropoutState::take(query.device().index(), flash.draws(), op);
    flash.generator = state->generator(query.device().index());
  }
  const FlashResult made = run_forward(flash);
  return {made.out, made.sums, kept_state(state, query),
          at::zeros({}, query.options().dtype(at::kLong)).view(at::kUInt64),
          at::empty({0}, query.options())};
}

// varlen_attn_out: into a tensor of the caller's.
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
  const Flash flash{op,
                    query,
                    key,
                    value,
                    or_none(cum_seq_q),
                    or_none(cum_seq_k),
                    or_none(used_keys),
                    or_none(block_table),
                    or_none(alibi_slopes),
                    0,
                    scale_of(scale, query),
                    causal,
                    limit(left),
                    limit(right),
                    {}};
  flash.check();
  const FlashResult made = run_forward(flash);
  TORCH_CHECK(
      out.sizes() == made.out.sizes() && out.scalar_type() == query.scalar_type(), op,
      ": out is ", made.out.sizes(), " of ", query.scalar_type(), "; found ",
      out.sizes(), " of ", out.scalar_type(), ". Make it with torch.empty_like(query)");
  out.copy_(made.out);
  return made.sums;
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
  const DeviceScope scope(query.device().index());
  Flash flash{op,
              query,
              key,
              value,
              cum_seq_q,
              cum_seq_k,
              {},
              {},
              {},
              dropout,
              scale_of(scale, query),
              causal,
              limit(left),
              limit(right),
              {}};
  flash.check();
  if (dropout > 0)
    flash.generator = state_of(rng_state).generator(query.device().index());
  if (!flash.packed()) {
    const BandedGradients made =
        attend_banded_backward(flash.all(), grad.transpose(1, 2), out.transpose(1, 2),
                               sums, /*wants_bias=*/false);
    return {made.query.transpose(1, 2).contiguous(),
            made.key.transpose(1, 2).contiguous(),
            made.value.transpose(1, 2).contiguous()};
  }
  Tensor query_grad = at::zeros_like(query), key_grad = at::zeros_like(key),
         value_grad = at::zeros_like(value);
  int64_t i = 0;
  for (const Sequence& each : flash.sequences()) {
    const int64_t at = i++;
    if (each.queries == 0) continue;
    const auto rows = [&](const Tensor& tensor) {
      return with_batch(tensor.narrow(0, each.query, each.queries));
    };
    const BandedGradients made = attend_banded_backward(
        flash.of(each, at), rows(grad), rows(out),
        sums.narrow(1, each.query, each.queries).unsqueeze(0), /*wants_bias=*/false);
    query_grad.narrow(0, each.query, each.queries).copy_(without_batch(made.query));
    key_grad.narrow(0, each.key, each.keys).copy_(without_batch(made.key));
    value_grad.narrow(0, each.key, each.keys).copy_(without_batch(made.value));
  }
  return {query_grad, key_grad, value_grad};
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("_flash_attention_forward", TORCH_FN(flash_forward));
  m.impl("_flash_attention_forward_no_dropout_inplace", TORCH_FN(flash_forward_into));
  m.impl("_flash_attention_backward", TORCH_FN(flash_backward));
}

}  // namespace
}  // namespace xpurt
