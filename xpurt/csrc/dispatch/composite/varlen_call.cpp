#include "dispatch/composite/varlen_call.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace xpurt {
namespace {

using at::Tensor;

Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  return tensor.narrow(1, first, count).transpose(1, 2);
}

Tensor queries_of(const Tensor& tensor, const Sequence& each) {
  return rows_of(tensor, each.query, each.queries);
}

}  // namespace

VarlenCall::VarlenCall(const char* name, const Tensor& q, const Tensor& k,
                       const Tensor& v, const MaybeTensor& starts_q,
                       const MaybeTensor& starts_k, const MaybeTensor& used_keys,
                       double p, std::optional<double> scale)
    : op(name),
      query(q),
      key(k),
      value(v),
      starts_q(starts_q.value_or(Tensor())),
      starts_k(starts_k.value_or(Tensor())),
      used_keys(used_keys.value_or(Tensor())),
      dropout(p),
      scale(scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))))) {}

void VarlenCall::check_types() const {
  TORCH_CHECK(at::isFloatingType(query.scalar_type()) &&
                  query.scalar_type() == key.scalar_type() &&
                  query.scalar_type() == value.scalar_type(),
              op, ": query, key and value are of one floating type; found ",
              query.scalar_type(), ", ", key.scalar_type(), " and ",
              value.scalar_type(), ". Convert them with .to()");
}

DropoutState VarlenCall::take_dropout() {
  DropoutState state;
  if (dropout == 0) return state;
  state = DropoutState::take(query.device().index(),
                             static_cast<int64_t>(sequences.size()), op);
  repeat_dropout(state);
  return state;
}

void VarlenCall::repeat_dropout(const DropoutState& state) {
  generator = state.generator(query.device().index());
}

Tensor VarlenCall::keys_of(const Tensor& tensor, const Sequence& each, int64_t) const {
  return rows_of(tensor, each.key, each.keys);
}

BandedAttention VarlenCall::of(const Sequence& each, int64_t i) const {
  BandedAttention made;
  made.query = queries_of(query, each);
  made.key = keys_of(key, each, i);
  made.value = keys_of(value, each, i);
  made.scale = scale;
  made.dropout = dropout;
  made.generator = generator;
  mask(&made, i);
  return made;
}

Tensor VarlenCall::forward(const Tensor& sums) const {
  auto shape = query.sizes().vec();
  shape.back() = value.size(-1);
  Tensor out = at::empty(shape, query.options());
  if (packed()) out.zero_();  // some rows may belong to no sequence
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& each = sequences[i];
    if (each.queries == 0) continue;
    const BandedResult made = attend_banded(of(each, i));
    queries_of(out, each).copy_(made.out);
    if (sums.numel() > 0) sums_of(sums, each, i).copy_(made.sums);
  }
  return out;
}

BandedGradients VarlenCall::backward(const Tensor& grad, const Tensor& out,
                                     const Tensor& sums, bool wants_bias) const {
  BandedGradients all{at::zeros_like(query, {}, gradients_format),
                      at::zeros_like(key, {}, gradients_format),
                      at::zeros_like(value, {}, gradients_format),
                      {}};
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& each = sequences[i];
    if (each.queries == 0) continue;
    const bool has_sums = sums.defined() && sums.numel() > 0;
    BandedGradients made = attend_banded_backward(
        of(each, i), queries_of(grad, each), queries_of(out, each),
        has_sums ? sums_of(sums, each, i) : Tensor(), wants_bias);
    queries_of(all.query, each).copy_(made.query);
    rows_of(all.key, each.key, each.keys).copy_(made.key);
    rows_of(all.value, each.key, each.keys).copy_(made.value);
    all.bias = std::move(made.bias);
  }
  return all;
}

}  // namespace xpurt
