// Host forms of the rows that draw a variable number of times, and of choices.
#include <c10/util/Exception.h>

#include <unordered_map>

#include "random/traversal.h"

namespace xpurt {
namespace {

using c10::OperatorHandle;
using torch::jit::pop;
using torch::jit::Stack;

// Calls body(i) for each element, in several threads.
template <typename Body>
void each_element(int64_t numel, const Body& body) {
  constexpr int64_t kGrain = 512;
  at::parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

void poisson_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor rate, out;
  Draw draw;
  pop(*stack, rate, out, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(rate.scalar_type(), "poisson_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    const Elements<scalar_t> rates(rate), results(out);
    each_element(rate.numel(), [&](int64_t i) {
      auto supply = F::supply_of(draw.seed, draw.offset, i);
      const scalar_t lambda = rates[i];
      TORCH_CHECK(lambda >= 0,
                  "invalid Poisson rate, expected rate to be non-negative");
      results[i] = static_cast<scalar_t>(F::poisson_of(supply, lambda));
    });
  });
}

void binomial_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor count, prob, out;
  Draw draw;
  pop(*stack, count, prob, out, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(count.scalar_type(), "binomial_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    const Elements<scalar_t> counts(count), probs(prob), results(out);
    each_element(count.numel(), [&](int64_t i) {
      auto supply = F::supply_of(draw.seed, draw.offset, i);
      results[i] = static_cast<scalar_t>(F::binomial_of(supply, counts[i], probs[i]));
    });
  });
}

void gamma_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor shape, out;
  double least = 0;
  Draw draw;
  pop(*stack, shape, out, least, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(shape.scalar_type(), "gamma_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    const Elements<scalar_t> shapes(shape), results(out);
    each_element(shape.numel(), [&](int64_t i) {
      auto supply = F::supply_of(draw.seed, draw.offset, i);
      const auto value = static_cast<scalar_t>(F::gamma_of(supply, shapes[i]));
      results[i] = value < least ? static_cast<scalar_t>(least) : value;
    });
  });
}

void race_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor weights, places;
  int64_t categories = 0;
  Draw draw;
  pop(*stack, weights, places, categories, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(weights.scalar_type(), "multinomial", [&] {
    using F = FunctionsFor<scalar_t>;
    const Elements<scalar_t> given(weights);
    const Elements<int64_t> results(places);
    each_block(weights.numel(), F::NUMBERS, draw,
               [&](const Single::Words& words, int64_t first, int count) {
                 for (int k = 0; k < count; ++k) {
                   const int64_t e = first + k;
                   results[e] = F::place_of(F::number_of(as<F>(words), k), given[e],
                                            e % categories);
                 }
               });
  });
}

void whole_weights_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor weights, most, out;
  pop(*stack, weights, most, out);
  FOR_FLOATING(weights.scalar_type(), "multinomial", [&] {
    using F = FunctionsFor<scalar_t>;
    const Elements<scalar_t> given(weights), largest(most);
    const Elements<int64_t> results(out);
    each_element(weights.numel(), [&](int64_t i) {
      results[i] = F::whole_weight_of(given[i], largest[i]);
    });
  });
}

void choose_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor sums, out;
  int64_t categories = 0, samples = 0;
  Draw draw;
  pop(*stack, sums, out, categories, samples, draw.seed, draw.offset, draw.from);
  TORCH_INTERNAL_ASSERT(sums.is_contiguous());
  const int64_t* const of_rows = sums.const_data_ptr<int64_t>();
  const Elements<int64_t> results(out);
  each_block(
      out.numel(), 2, draw, [&](const Single::Words& words, int64_t first, int count) {
        for (int k = 0; k < count; ++k) {
          const int64_t e = first + k;
          const int64_t* const row = of_rows + e / samples * categories;
          const uint64_t drawn = Single::scaled_down(Single::wide_number_of(words, k),
                                                     row[categories - 1]);
          results[e] =
              std::upper_bound(row, row + categories - 1, static_cast<int64_t>(drawn)) -
              row;
        }
      });
}

}  // namespace

HostKernel sample_form(const std::string& name) {
  static const auto* const forms = new std::unordered_map<std::string, HostKernel>{
      {"poisson", &poisson_form}, {"binomial", &binomial_form},
      {"gamma", &gamma_form},     {"race", &race_form},
      {"choose", &choose_form},   {"whole_weights", &whole_weights_form},
  };
  return forms->at(name);
}

}  // namespace xpurt
