// Random ops that sample counts, categories and orders.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "dispatch/random_ops.h"

namespace xpurt {
namespace {

using at::Tensor;
using Generator = std::optional<at::Generator>;

RandomRow poisson_row("poisson"), binomial_row("binomial"), race_row("race"),
    gamma_row("gamma"), whole_weights_row("whole_weights"), choose_row("choose"),
    numbers_row("random_");

Tensor poisson(const Tensor& rate, Generator generator) {
  Tensor out = at::empty_like(rate, at::MemoryFormat::Contiguous);
  if (rate.numel() == 0) return out;
  check_floating(rate, "poisson_cpu");
  poisson_row(take_draw(generator, rate.device()), rate, out);
  return out;
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator generator) {
  TORCH_CHECK_VALUE(at::isFloatingType(count.scalar_type()),
                    "binomial only supports floating-point dtypes for count, got: ",
                    count.scalar_type());
  TORCH_CHECK_VALUE(at::isFloatingType(prob.scalar_type()),
                    "binomial only supports floating-point dtypes for prob, got: ",
                    prob.scalar_type());
  TORCH_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ",
              prob.scalar_type(), " but expected ", count.scalar_type());
  const Tensor counts = count.expand(at::infer_size(count.sizes(), prob.sizes()));
  Tensor out = at::empty(counts.sizes(), count.options());
  if (out.numel() == 0) return out;
  binomial_row(take_draw(generator, count.device()), counts,
               prob.expand(counts.sizes()), out);
  return out;
}

// Numbers with the gamma distribution, of the type of `shape`, and the least one.
template <typename T>
Tensor gamma_numbers(const Tensor& shape, Generator generator) {
  Tensor out = at::empty(shape.sizes(), shape.options());
  if (shape.numel() == 0) return out;
  constexpr double least = std::numeric_limits<T>::min();
  gamma_row(take_draw(generator, shape.device()), shape, out, least);
  return out;
}

Tensor standard_gamma(const Tensor& shape, Generator generator) {
  Tensor out;
  AT_DISPATCH_FLOATING_TYPES(shape.scalar_type(), "gamma_cpu", [&] {
    out = gamma_numbers<scalar_t>(shape, std::move(generator));
  });
  return out;
}

Tensor dirichlet(const Tensor& shape, Generator generator) {
  Tensor out;
  AT_DISPATCH_FLOATING_TYPES(shape.scalar_type(), "dirichlet", [&] {
    out = gamma_numbers<scalar_t>(shape, std::move(generator));
    const scalar_t below_one = std::nextafter(scalar_t{1}, scalar_t{0});
    out.div_(out.sum(-1, /*keepdim=*/true))
        .clamp_(std::numeric_limits<scalar_t>::min(), below_one);
  });
  return out;
}

constexpr int64_t kMaxCategories = 1 << 24;

// Raises if the weights are no distribution. `most`: the largest weight of each row.
// Waits for the device once.
void check_weights(const Tensor& weights, const Tensor& most, bool replacement) {
  const bool one = most.numel() == 1;
  const Tensor ends = at::stack({weights.min(), one ? most.squeeze() : most.min(),
                                 one ? most.squeeze() : most.max()})
                          .cpu()
                          .to(at::kDouble);
  const auto* const end = ends.const_data_ptr<double>();
  const bool right = end[0] >= 0 && end[2] < INFINITY;  // false for NaN, too
  if (replacement && !right) {
    TORCH_CHECK(
        weights.ge(0).all().item().toBool(),
        "invalid multinomial distribution (encountering probability entry < 0)");
    TORCH_CHECK(false,
                "invalid multinomial distribution (encountering probability entry = "
                "infinity or NaN)");
  }
  TORCH_CHECK(right, "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(end[1] > 0,
              "invalid multinomial distribution (sum of probabilities <= 0)");
}

Tensor& multinomial_out(const Tensor& self, int64_t samples, bool replacement,
                        Generator generator, Tensor& out) {
  TORCH_CHECK(out.device() == self.device(),
              "multinomial arguments must have the same device");
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ",
              self.scalar_type());
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "multinomial expects Long tensor out, got: ", out.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  TORCH_CHECK(categories <= kMaxCategories, "number of categories cannot exceed 2^24");
  TORCH_CHECK(
      replacement || samples <= categories,
      "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  std::vector<int64_t> sizes{samples};
  if (self.dim() == 2) sizes.insert(sizes.begin(), self.size(0));
  at::native::resize_output(out, sizes);
  if (out.numel() == 0) return out;
  TORCH_CHECK(categories > 0,
              "invalid multinomial distribution (sum of probabilities <= 0)");
  const Tensor most = at::amax(self, {-1}, /*keepdim=*/true);
  check_weights(self, most, replacement && samples > 1);
  const Draw draw = take_draw(generator, self.device());
  const Tensor whole = at::empty(self.sizes(), self.options().dtype(at::kLong));
  if (replacement && samples > 1) {
    whole_weights_row.without_draw(self, most.expand(self.sizes()), whole);
    choose_row(draw, at::cumsum(whole, -1), out, categories, samples);
    return out;
  }
  race_row(draw, self, whole, categories);
  // All numbers of a row differ, so every sort gives the same order.
  const Tensor first = samples == 1
                           ? at::amin(whole, {-1}, /*keepdim=*/true)
                           : std::get<0>(at::topk(whole, samples, -1, /*largest=*/false,
                                                  /*sorted=*/true));
  return out.copy_(first.bitwise_and(kMaxCategories - 1));
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement,
                   Generator generator) {
  Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, samples, replacement, std::move(generator), out);
}

// The stable sort order of n random numbers of 64 bits.
Tensor& randperm_out(int64_t n, Generator generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool,
                              "\"randperm\" not implemented for 'Bool'");
  at::native::check_supported_max_int_with_precision(n, out);
  at::native::resize_output(out, {n});
  if (n == 0) return out;
  const Tensor numbers = at::empty({n}, out.options().dtype(at::kLong));
  numbers_row(take_draw(generator, out.device()), numbers, int64_t{0}, int64_t{0});
  const auto sorted = at::sort(numbers, /*stable=*/true, 0, /*descending=*/false);
  return out.copy_(std::get<1>(sorted));
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("poisson", TORCH_FN(poisson));
  m.impl("binomial", TORCH_FN(binomial));
  m.impl("_standard_gamma", TORCH_FN(standard_gamma));
  m.impl("_sample_dirichlet", TORCH_FN(dirichlet));
  m.impl("multinomial", TORCH_FN(multinomial));
  m.impl("multinomial.out", TORCH_FN(multinomial_out));
  m.impl("randperm.generator_out", TORCH_FN(randperm_out));
}

}  // namespace
}  // namespace xpurt
