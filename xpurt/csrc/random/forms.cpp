// Host forms of the rows of random numbers: their native tier.
#include "random/forms.h"

#include <c10/util/Exception.h>

#include <unordered_map>

#include "random/traversal.h"

namespace xpurt {
namespace {

using c10::OperatorHandle;
using torch::jit::pop;
using torch::jit::Stack;

void uniform_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double low = 0, high = 0, last = 0;
  int64_t digits = 0;
  Draw draw;
  pop(*stack, self, low, high, last, digits, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(self.scalar_type(), "uniform_", [&] {
    using F = FunctionsFor<scalar_t>;
    using R = decltype(F::unit_of(0));
    fill<scalar_t>(self, F::NUMBERS, draw, [&](const Single::Words& words, int k) {
      return F::uniform_of(F::number_of(as<F>(words), k), R(low), R(high), R(last),
                           static_cast<int>(digits));
    });
  });
}

void normal_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double mean = 0, std = 0;
  Draw draw;
  pop(*stack, self, mean, std, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(self.scalar_type(), "normal_kernel_cpu", [&] {
    fill_normals<scalar_t>(self, draw, mean, std, [](auto value) { return value; });
  });
}

void log_normal_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double mean = 0, std = 0;
  Draw draw;
  pop(*stack, self, mean, std, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(self.scalar_type(), "log_normal_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    using R = decltype(F::unit_of(0));
    fill_normals<scalar_t>(self, draw, mean, std,
                           [](R value) { return F::exp_of(value); });
  });
}

void exponential_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double scale = 0, least = 0;
  Draw draw;
  pop(*stack, self, scale, least, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(self.scalar_type(), "exponential_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    using R = decltype(F::unit_of(0));
    fill<scalar_t>(self, F::NUMBERS, draw, [&](const Single::Words& words, int k) {
      return F::exponential_of(F::number_of(as<F>(words), k), R(scale), R(least));
    });
  });
}

void geometric_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double scale = 0;
  Draw draw;
  pop(*stack, self, scale, draw.seed, draw.offset, draw.from);
  AT_DISPATCH_ALL_TYPES_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "geometric_cpu", [&] {
        using F = FunctionsFor<scalar_t>;
        using R = decltype(F::unit_of(0));
        fill<scalar_t>(self, F::NUMBERS, draw, [&](const Single::Words& words, int k) {
          return F::geometric_of(F::number_of(as<F>(words), k), R(scale));
        });
      });
}

void cauchy_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  double median = 0, sigma = 0;
  Draw draw;
  pop(*stack, self, median, sigma, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(self.scalar_type(), "cauchy_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    using R = decltype(F::unit_of(0));
    fill<scalar_t>(self, F::NUMBERS, draw, [&](const Single::Words& words, int k) {
      return F::cauchy_of(F::number_of(as<F>(words), k), R(median), R(sigma));
    });
  });
}

void random_form_of_integers(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  int64_t base = 0, range = 0;
  Draw draw;
  pop(*stack, self, base, range, draw.seed, draw.offset, draw.from);
  FOR_ALL(self.scalar_type(), "random_from_to_cpu", [&] {
    fill<scalar_t>(self, 2, draw, [&](const Single::Words& words, int k) {
      const uint64_t n = Single::wide_number_of(words, k);
      return static_cast<int64_t>(base + Single::scaled_down(n, range));
    });
  });
}

void bernoulli_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor self;
  int64_t threshold = 0;
  Draw draw;
  pop(*stack, self, threshold, draw.seed, draw.offset, draw.from);
  FOR_ALL(self.scalar_type(), "bernoulli_scalar_cpu_", [&] {
    fill<scalar_t>(self, 4, draw, [&](const Single::Words& words, int k) {
      return static_cast<int>(words.word[k] < static_cast<uint64_t>(threshold));
    });
  });
}

void bernoulli_tensor_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor p, self;
  Draw draw;
  pop(*stack, p, self, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(p.scalar_type(), "bernoulli_tensor_cpu_p_", [&] {
    using chance_t = scalar_t;
    using F = FunctionsFor<chance_t>;
    using R = decltype(F::unit_of(0));
    const Elements<chance_t> chances(p);
    FOR_ALL(self.scalar_type(), "bernoulli_tensor_cpu_self_", [&] {
      const Elements<scalar_t> elements(self);
      each_block(self.numel(), 4, draw,
                 [&](const Single::Words& words, int64_t first, int count) {
                   for (int k = 0; k < count; ++k) {
                     const R p_in = static_cast<R>(chances[first + k]);
                     TORCH_CHECK(p_in >= 0 && p_in <= 1);
                     elements[first + k] =
                         static_cast<scalar_t>(words.word[k] < F::threshold_of(p_in));
                   }
                 });
    });
  });
}

void dropout_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor input, out, mask;
  int64_t threshold = 0;
  double scale = 0;
  Draw draw;
  pop(*stack, input, out, mask, threshold, scale, draw.seed, draw.offset, draw.from);
  FOR_FLOATING(input.scalar_type(), "native_dropout", [&] {
    using R = decltype(FunctionsFor<scalar_t>::unit_of(0));
    const Elements<scalar_t> from(input), to(out);
    const Elements<uint8_t> kept(mask);  // or bool
    each_block(input.numel(), 4, draw,
               [&](const Single::Words& words, int64_t first, int count) {
                 for (int k = 0; k < count; ++k) {
                   const bool keeps = words.word[k] < static_cast<uint64_t>(threshold);
                   kept[first + k] = keeps;
                   to[first + k] = static_cast<scalar_t>(
                       static_cast<R>(from[first + k]) * R(keeps) * R(scale));
                 }
               });
  });
}

void rrelu_form(const OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  Tensor input, out, noise;
  double low = 0, high = 0, last = 0;
  int64_t digits = 0;
  Draw draw;
  pop(*stack, input, out, noise, low, high, last, digits, draw.seed, draw.offset,
      draw.from);
  FOR_FLOATING(input.scalar_type(), "rrelu_with_noise_out_cpu", [&] {
    using F = FunctionsFor<scalar_t>;
    using R = decltype(F::unit_of(0));
    const Elements<scalar_t> from(input), to(out), slopes(noise);
    each_block(input.numel(), F::NUMBERS, draw,
               [&](const Single::Words& words, int64_t first, int count) {
                 for (int k = 0; k < count; ++k) {
                   const R x = static_cast<R>(from[first + k]);
                   const R drawn =
                       F::uniform_of(F::number_of(as<F>(words), k), R(low), R(high),
                                     R(last), static_cast<int>(digits));
                   const R slope = x <= 0 ? drawn : R(1);
                   slopes[first + k] = static_cast<scalar_t>(slope);
                   to[first + k] = static_cast<scalar_t>(x * slope);
                 }
               });
  });
}

}  // namespace

HostKernel random_form(const std::string& name) {
  static const auto* const forms = new std::unordered_map<std::string, HostKernel>{
      {"uniform_", &uniform_form},
      {"normal_", &normal_form},
      {"log_normal_", &log_normal_form},
      {"exponential_", &exponential_form},
      {"geometric_", &geometric_form},
      {"cauchy_", &cauchy_form},
      {"random_", &random_form_of_integers},
      {"bernoulli_", &bernoulli_form},
      {"bernoulli_tensor_", &bernoulli_tensor_form},
      {"dropout", &dropout_form},
      {"rrelu", &rrelu_form},
  };
  const auto found = forms->find(name);
  return found == forms->end() ? sample_form(name) : found->second;
}

}  // namespace xpurt
