// One attention with a band: by the fused op, for which the CPU has a kernel and xpurt
// a row, if it supports the call; else by matrix products in the wider type.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "dispatch/composite/varlen_math.h"

#include "dispatch/composite/attention.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

at::ScalarType wider(const Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// The band without limits that exclude no key.
Band needed(const BandedAttention& asked) {
  Band band = asked.band;
  if (band.highest.has_value() && *band.highest >= asked.keys() - 1)
    band.highest.reset();
  if (band.lowest.has_value() && *band.lowest <= 1 - asked.queries())
    band.lowest.reset();
  return band;
}

bool has_blind_queries(const BandedAttention& asked) {
  const auto& [lowest, highest] = asked.band;
  return asked.keys() == 0 || (highest.has_value() && *highest < 0) ||
         (lowest.has_value() && asked.queries() - 1 + *lowest > asked.keys() - 1) ||
         (lowest.has_value() && highest.has_value() && *lowest > *highest);
}

// (L, S): -infinity if the query does not attend to the key, else 0. Undefined if all
// queries attend to all keys.
Tensor band_mask(const BandedAttention& asked) {
  const Band band = needed(asked);
  if (!band.lowest.has_value() && !band.highest.has_value()) return {};
  const auto positions = asked.query.options().dtype(at::kLong);
  const Tensor distance =
      at::arange(asked.keys(), positions)
          .sub(at::arange(asked.queries(), positions).unsqueeze(1));  // j - i
  Tensor mask = at::zeros({asked.queries(), asked.keys()},
                          asked.query.options().dtype(wider(asked.query)));
  if (band.highest.has_value())
    mask.masked_fill_(distance.gt(*band.highest), kMinusInfinity);
  if (band.lowest.has_value())
    mask.masked_fill_(distance.lt(*band.lowest), kMinusInfinity);
  return mask;
}

// The sum of bias and mask, which is added to the scores; undefined if there is
// neither.
Tensor added(const BandedAttention& asked) {
  const Tensor mask = band_mask(asked);
  if (!asked.bias.defined()) return mask;
  const Tensor bias = asked.bias.to(wider(asked.query));
  return mask.defined() ? bias + mask : bias;
}

int64_t group_of(const BandedAttention& asked) {
  return asked.query.size(1) / asked.key.size(1);
}

// Repeats each head of keys for the heads of queries that share it.
Tensor shared(const BandedAttention& asked, const Tensor& tensor) {
  const int64_t group = group_of(asked);
  if (group == 1) return tensor;
  return tensor.unsqueeze(2)
      .expand({tensor.size(0), tensor.size(1), group, tensor.size(2), tensor.size(3)})
      .reshape(
          {tensor.size(0), tensor.size(1) * group, tensor.size(2), tensor.size(3)});
}

Tensor sum_of_shared(const BandedAttention& asked, const Tensor& grad) {
  const int64_t group = group_of(asked);
  if (group == 1) return grad;
  return grad.to(wider(grad))
      .view({grad.size(0), grad.size(1) / group, group, grad.size(2), grad.size(3)})
      .sum(2)
      .to(grad.scalar_type());
}

bool is_fused(const BandedAttention& asked) {
  const auto type = asked.query.scalar_type();
  return asked.dropout == 0 && asked.query.numel() > 0 && asked.key.numel() > 0 &&
         asked.value.size(3) == asked.query.size(3) && !has_blind_queries(asked) &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16);
}

// The mask in the form of the fused op, which has a flag for a causal mask from the
// upper left corner.
struct FusedMask {
  bool causal = false;
  std::optional<Tensor> mask;

  explicit FusedMask(const BandedAttention& asked) {
    const Band band = needed(asked);
    causal = !asked.bias.defined() && !band.lowest.has_value() && band.highest == 0;
    if (causal) return;
    Tensor sum = added(asked);
    if (!sum.defined()) return;
    mask = sum.expand(
        {asked.query.size(0), asked.query.size(1), asked.queries(), asked.keys()});
  }
};

struct Weights {
  Tensor softmax;  // (N, H, L, S)
  Tensor kept;     // factors of dropout, or undefined
  Tensor sums;     // (N, H, L)
};

Weights weights_of(const BandedAttention& asked) {
  const auto type = wider(asked.query);
  Tensor scores = at::matmul(asked.query.to(type),
                             shared(asked, asked.key).to(type).transpose(-1, -2))
                      .mul(asked.scale);
  const Tensor more = added(asked);
  if (more.defined()) scores = scores + more;
  Weights made;
  made.sums = at::logsumexp(scores, -1);
  // For queries that attend to no key: exp(-infinity - 0) is 0.
  const Tensor safe = made.sums.masked_fill(made.sums.eq(kMinusInfinity), 0);
  made.softmax = scores.sub(safe.unsqueeze(-1)).exp();
  if (asked.dropout > 0) {
    const double factor = asked.dropout < 1 ? 1 / (1 - asked.dropout) : 0;
    made.kept = at::empty(scores.sizes(), asked.query.options().dtype(type))
                    .bernoulli_(1 - asked.dropout, asked.generator)
                    .mul_(factor);
  }
  return made;
}

}  // namespace

BandedResult attend_banded(const BandedAttention& asked) {
  const Tensor& query = asked.query;
  if (is_fused(asked)) {
    const FusedMask mask(asked);
    auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
        in_rows(query), in_rows(shared(asked, asked.key)),
        in_rows(shared(asked, asked.value)), 0, mask.causal, mask.mask, asked.scale);
    return {out, sums.to(at::kFloat)};
  }
  if (asked.keys() == 0) {
    return {
        at::zeros({query.size(0), query.size(1), asked.queries(), asked.value.size(3)},
                  query.options()),
        at::full({query.size(0), query.size(1), asked.queries()}, kMinusInfinity,
                 query.options().dtype(at::kFloat))};
  }
  const Weights weights = weights_of(asked);
  const Tensor dropped =
      weights.kept.defined() ? weights.softmax * weights.kept : weights.softmax;
  const Tensor out =
      at::matmul(dropped, shared(asked, asked.value).to(dropped.scalar_type()));
  return {out.to(query.scalar_type()), weights.sums.to(at::kFloat)};
}

BandedGradients attend_banded_backward(const BandedAttention& asked, const Tensor& grad,
                                       const Tensor& out, const Tensor& sums,
                                       bool wants_bias) {
  const auto type = asked.query.scalar_type();
  if (is_fused(asked) && !wants_bias && sums.defined() && sums.numel() > 0) {
    const FusedMask mask(asked);
    auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        in_rows(grad), in_rows(asked.query), in_rows(shared(asked, asked.key)),
        in_rows(shared(asked, asked.value)), in_rows(out), sums, 0, mask.causal,
        mask.mask, asked.scale);
    return {query, sum_of_shared(asked, key), sum_of_shared(asked, value), {}};
  }
  BandedGradients made;
  if (asked.keys() == 0) {
    made = {at::zeros_like(asked.query),
            at::zeros_like(asked.key),
            at::zeros_like(asked.value),
            {}};
    if (wants_bias) made.bias = at::zeros_like(asked.bias);
    return made;
  }
  const Weights weights = weights_of(asked);
  const auto compute = weights.softmax.scalar_type();
  const Tensor wide = grad.to(compute);
  const Tensor value = shared(asked, asked.value).to(compute);
  const Tensor dropped =
      weights.kept.defined() ? weights.softmax * weights.kept : weights.softmax;
  made.value = sum_of_shared(asked, at::matmul(dropped.transpose(-1, -2), wide));
  Tensor change = at::matmul(wide, value.transpose(-1, -2));
  if (weights.kept.defined()) change = change * weights.kept;
  const Tensor mean = (change * weights.softmax).sum(-1, true);
  const Tensor scores = (change - mean) * weights.softmax;
  if (wants_bias)
    made.bias = scores.sum_to_size(asked.bias.sizes()).to(asked.bias.scalar_type());
  made.query = at::matmul(scores, shared(asked, asked.key).to(compute))
                   .mul(asked.scale)
                   .to(type);
  made.key =
      sum_of_shared(asked, at::matmul(scores.transpose(-1, -2), asked.query.to(compute))
                               .mul(asked.scale))
          .to(type);
  made.value = made.value.to(type);
  return made;
}

}  // namespace xpurt
