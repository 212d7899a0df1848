// The random ops of aten: PyTorch's templates check the arguments, as for its own
// devices, and the rows of random numbers fill the tensors.
#include "dispatch/random_ops.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>

#include <cmath>

#include "device/device_scope.h"
#include "dispatch/dispatch.h"
#include "random/forms.h"

namespace xpurt {

void RandomRow::run(torch::jit::Stack* stack) {
  OpRecord* record = record_.load(std::memory_order_acquire);
  if (C10_UNLIKELY(record == nullptr)) {
    // Looked up late, since the rows are registered with the first mapping.
    const std::string full = std::string("xpurt::") + name_;
    record =
        &op_record(c10::Dispatcher::singleton().findSchemaOrThrow(full.c_str(), ""));
    record->host_kernel = random_form(name_);
    record->has_cpu_kernel = true;
    record_.store(record, std::memory_order_release);
  }
  const c10::DeviceIndex index = stack->front().toTensor().device().index();
  const DeviceScope scope(index);
  run_op_at(*record, index, c10::DispatchKeySet(c10::DispatchKey::XPU), stack);
}

namespace {

using at::Tensor;
using c10::ScalarType;
using Generator = std::optional<at::Generator>;
namespace templates = at::native::templates;

// Binary digits of the significand of a floating type.
int64_t digits_of(ScalarType type) {
  switch (type) {
    case ScalarType::Double:
      return 53;
    case ScalarType::Half:
      return 11;
    case ScalarType::BFloat16:
      return 8;
    default:
      return 24;
  }
}

// The largest number of a 16-bit type that is less than `to`.
template <typename T>
double narrow_below(double to) {
  T found = static_cast<float>(to);
  if (static_cast<float>(found) < to) return found;
  const bool zero = (found.x & 0x7fff) == 0;
  const bool negative = (found.x & 0x8000) != 0;
  found.x = zero ? 0x8001 : static_cast<uint16_t>(negative ? found.x + 1 : found.x - 1);
  return found;
}

double last_below(double to, ScalarType type) {
  if (type == ScalarType::Double) return std::nextafter(to, -INFINITY);
  if (type == ScalarType::Half) return narrow_below<at::Half>(to);
  if (type == ScalarType::BFloat16) return narrow_below<at::BFloat16>(to);
  const auto found = static_cast<float>(to);
  return found < to ? found : std::nextafter(found, -INFINITY);
}

// The least positive number of a type; for wide types, the least normal one.
double least_above_zero(ScalarType type) {
  if (type == ScalarType::Half) return 0x1p-24;
  return type == ScalarType::Double ? 0x1p-1022 : 0x1p-126;
}

int64_t threshold_of(double p) {
  return static_cast<int64_t>(Double::threshold_of(p));
}

RandomRow uniform_row("uniform_"), normal_row("normal_"), log_normal_row("log_normal_"),
    exponential_row("exponential_"), geometric_row("geometric_"), cauchy_row("cauchy_"),
    random_row("random_"), bernoulli_row("bernoulli_"),
    bernoulli_tensor_row("bernoulli_tensor_"), dropout_row("dropout"),
    rrelu_row("rrelu");

// The functors that the templates call with checked arguments. Their template parameter
// is the generator's type, which is not used here.

template <typename>
struct Uniform {
  void operator()(at::TensorIteratorBase& iter, double from, double to,
                  const Generator& generator) {
    const Tensor& self = iter.output();
    const ScalarType type = self.scalar_type();
    uniform_row(take_draw(generator, self.device()), self, from, to,
                last_below(to, type), digits_of(type));
  }
};

template <typename>
struct Normal {
  void operator()(const Tensor& self, double mean, double std,
                  const Generator& generator) {
    at::assert_no_internal_overlap(self);
    check_floating(self, "normal_kernel_cpu");
    normal_row(take_draw(generator, self.device()), self, mean, std);
  }
};

template <typename>
struct LogNormal {
  void operator()(at::TensorIteratorBase& iter, double mean, double std,
                  const Generator& generator) {
    const Tensor& self = iter.output();
    check_floating(self, "log_normal_cpu");
    log_normal_row(take_draw(generator, self.device()), self, mean, std);
  }
};

template <typename>
struct Exponential {
  void operator()(at::TensorIteratorBase& iter, double lambda,
                  const Generator& generator) {
    const Tensor& self = iter.output();
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "Exponential distribution is a continuous probability distribution. "
                "dtype must be a floating point but you specified ",
                self.scalar_type());
    const double scale = 1 / lambda, least = least_above_zero(self.scalar_type());
    // If the mean is below the least number, zero is a possible result; for an infinite
    // lambda it is the only one.
    exponential_row(take_draw(generator, self.device()), self, scale,
                    scale < least ? 0.0 : least);
  }
};

template <typename>
struct Geometric {
  void operator()(at::TensorIteratorBase& iter, double p, const Generator& generator) {
    const Tensor& self = iter.output();
    geometric_row(take_draw(generator, self.device()), self, -1 / std::log1p(-p));
  }
};

template <typename>
struct Cauchy {
  void operator()(at::TensorIteratorBase& iter, double median, double sigma,
                  const Generator& generator) {
    const Tensor& self = iter.output();
    cauchy_row(take_draw(generator, self.device()), self, median, sigma);
  }
};

template <typename>
struct Random {
  // Draws from all non-negative numbers of an integral type. For a floating type, from
  // the integers up to the last one below which the type has every integer.
  void operator()(at::TensorIteratorBase& iter, const Generator& generator) {
    const Tensor& self = iter.output();
    const ScalarType type = self.scalar_type();
    uint64_t range = 0;
    if (at::isFloatingType(type)) {
      range = (uint64_t{1} << digits_of(type)) + 1;
    } else if (type == ScalarType::Bool) {
      range = 2;
    } else {
      const bool is_signed = c10::isSignedType(type);
      const size_t bits = 8 * self.element_size() - (is_signed ? 1 : 0);
      range = bits == 64 ? 0 : uint64_t{1} << bits;
    }
    random_row(take_draw(generator, self.device()), self, int64_t{0},
               static_cast<int64_t>(range));
  }
};

template <typename>
struct RandomFromTo {
  void operator()(at::TensorIteratorBase& iter, uint64_t range, int64_t from,
                  const Generator& generator) {
    const Tensor& self = iter.output();
    random_row(take_draw(generator, self.device()), self, from,
               static_cast<int64_t>(range));
  }
  // Draws from all 64-bit integers.
  void operator()(at::TensorIteratorBase& iter, const Generator& generator) {
    const Tensor& self = iter.output();
    TORCH_CHECK_NOT_IMPLEMENTED(
        self.scalar_type() != ScalarType::Half,
        "random_ of all 64-bit integers is not implemented for 'Half', which has no "
        "number near most of them: give it bounds, as in random_(-2048, 2049)");
    random_row(take_draw(generator, self.device()), self, int64_t{0}, int64_t{0});
  }
};

template <typename>
struct Bernoulli {
  void operator()(const Tensor& self, double p, const Generator& generator) {
    bernoulli_row(take_draw(generator, self.device()), self, threshold_of(p));
  }
};

template <typename>
struct BernoulliTensor {
  void operator()(const Tensor& self, const Tensor& p, const Generator& generator) {
    TORCH_CHECK(p.device() == self.device() || p.dim() == 0,
                "Expected all tensors to be on the same device, but found at least two "
                "devices, ",
                self.device(), " and ", p.device(), "!");
    check_floating(p, "bernoulli_tensor_cpu_p_");
    at::assert_no_partial_overlap(self, p);
    const Tensor chance = p.to(self.device()).expand(self.sizes());
    bernoulli_tensor_row(take_draw(generator, self.device()), chance, self);
  }
};

using Any = at::Generator;

Tensor& uniform_(Tensor& self, double from, double to, Generator generator) {
  return templates::uniform_impl_<Uniform, Any>(self, from, to, generator);
}
Tensor& normal_(Tensor& self, double mean, double std, Generator generator) {
  return templates::normal_impl_<Normal, Any>(self, mean, std, generator);
}
Tensor& log_normal_(Tensor& self, double mean, double std, Generator generator) {
  return templates::log_normal_impl_<LogNormal, Any>(self, mean, std, generator);
}
Tensor& exponential_(Tensor& self, double lambda, Generator generator) {
  return templates::exponential_impl_<Exponential, Any>(self, lambda, generator);
}
Tensor& geometric_(Tensor& self, double p, Generator generator) {
  return templates::geometric_impl_<Geometric, Any>(self, p, generator);
}
Tensor& cauchy_(Tensor& self, double median, double sigma, Generator generator) {
  return templates::cauchy_impl_<Cauchy, Any>(self, median, sigma, generator);
}
Tensor& random_(Tensor& self, Generator generator) {
  return templates::random_impl<Random, Any>(self, generator);
}
Tensor& random_from(Tensor& self, int64_t from, std::optional<int64_t> to,
                    Generator generator) {
  return templates::random_from_to_impl<RandomFromTo, Any>(self, from, to, generator);
}
Tensor& random_to(Tensor& self, int64_t to, Generator generator) {
  return random_from(self, 0, to, std::move(generator));
}
Tensor& bernoulli_(Tensor& self, double p, Generator generator) {
  return templates::bernoulli_impl_<Bernoulli, Any>(self, p, generator);
}
Tensor& bernoulli_tensor_(Tensor& self, const Tensor& p, Generator generator) {
  return templates::bernoulli_impl_<BernoulliTensor, Any>(self, p, generator);
}
Tensor& bernoulli_out(const Tensor& self, Generator generator, Tensor& out) {
  return templates::bernoulli_out_impl<BernoulliTensor, Any>(out, self, generator);
}

Tensor normal_mean(const Tensor& mean, double std, Generator generator) {
  return templates::normal_impl<Normal, Any>(mean, std, generator);
}
Tensor normal_std(double mean, const Tensor& std, Generator generator) {
  return templates::normal_impl<Normal, Any>(mean, std, generator);
}
Tensor normal_both(const Tensor& mean, const Tensor& std, Generator generator) {
  return templates::normal_impl<Normal, Any>(mean, std, generator);
}
Tensor& normal_mean_out(const Tensor& mean, double std, Generator generator,
                        Tensor& out) {
  return templates::normal_out_impl<Normal, Any>(out, mean, std, generator);
}
Tensor& normal_std_out(double mean, const Tensor& std, Generator generator,
                       Tensor& out) {
  return templates::normal_out_impl<Normal, Any>(out, mean, std, generator);
}
Tensor& normal_both_out(const Tensor& mean, const Tensor& std, Generator generator,
                        Tensor& out) {
  return templates::normal_out_impl<Normal, Any>(out, mean, std, generator);
}

// Dropout that keeps a fraction `kept`: the result, and the mask of type `mask_type`.
std::tuple<Tensor, Tensor> dropped(const Tensor& input, double kept,
                                   ScalarType mask_type, const Generator& generator) {
  TORCH_CHECK(0 <= kept && kept <= 1,
              "bernoulli_ expects p to be in [0, 1], but got p=", kept);
  const auto mask_options = input.options().dtype(mask_type);
  Tensor mask = at::empty_like(input, mask_options);
  const double scale = kept == 0 ? 0 : 1 / kept;
  if (!at::isFloatingType(input.scalar_type())) {
    mask.bernoulli_(kept, generator);
    return {input.mul(mask).mul_(scale), mask};
  }
  Tensor out = at::empty_like(input);
  if (input.numel() == 0) return {out, mask};
  dropout_row(take_draw(generator, input.device()), input, out, mask,
              threshold_of(kept), scale);
  return {out, mask};
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  if (!train.value_or(true)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  return dropped(input, 1 - p, at::kBool, std::nullopt);
}

// `p` is the fraction that is kept.
std::tuple<Tensor, Tensor> fused_dropout(const Tensor& self, double p,
                                         Generator generator) {
  return dropped(self, p, at::kByte, generator);
}

Tensor& rrelu_out(const Tensor& self, Tensor& noise, const at::Scalar& lower,
                  const at::Scalar& upper, bool training, Generator generator,
                  Tensor& out) {
  if (!training) {
    const double slope = (lower.toDouble() + upper.toDouble()) / 2;
    return at::leaky_relu_out(out, self, slope);
  }
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ",
              self.sizes(), " noise.shape = ", noise.sizes());
  const ScalarType type = self.scalar_type();
  TORCH_CHECK(noise.scalar_type() == type, "expected scalar type ", type, " but found ",
              noise.scalar_type());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "rrelu_with_noise",
                                  [&] {  // throws if they are out of range
                                    lower.to<scalar_t>();
                                    upper.to<scalar_t>();
                                  });
  const double from = lower.toDouble(), to = upper.toDouble();
  TORCH_CHECK(from <= to);
  at::native::resize_output(out, self.sizes());
  at::assert_no_internal_overlap(out);
  if (self.numel() == 0) return out;
  rrelu_row(take_draw(generator, self.device()), self, out, noise, from, to,
            last_below(to, type), digits_of(type));
  return out;
}
Tensor rrelu(const Tensor& self, Tensor& noise, const at::Scalar& lower,
             const at::Scalar& upper, bool training, Generator generator) {
  Tensor out = at::empty_like(self);
  return rrelu_out(self, noise, lower, upper, training, std::move(generator), out);
}
Tensor& rrelu_(Tensor& self, Tensor& noise, const at::Scalar& lower,
               const at::Scalar& upper, bool training, Generator generator) {
  return rrelu_out(self, noise, lower, upper, training, std::move(generator), self);
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("uniform_", TORCH_FN(uniform_));
  m.impl("normal_", TORCH_FN(normal_));
  m.impl("normal.Tensor_float", TORCH_FN(normal_mean));
  m.impl("normal.float_Tensor", TORCH_FN(normal_std));
  m.impl("normal.Tensor_Tensor", TORCH_FN(normal_both));
  m.impl("normal.Tensor_float_out", TORCH_FN(normal_mean_out));
  m.impl("normal.float_Tensor_out", TORCH_FN(normal_std_out));
  m.impl("normal.Tensor_Tensor_out", TORCH_FN(normal_both_out));
  m.impl("log_normal_", TORCH_FN(log_normal_));
  m.impl("exponential_", TORCH_FN(exponential_));
  m.impl("geometric_", TORCH_FN(geometric_));
  m.impl("cauchy_", TORCH_FN(cauchy_));
  m.impl("random_", TORCH_FN(random_));
  m.impl("random_.from", TORCH_FN(random_from));
  m.impl("random_.to", TORCH_FN(random_to));
  m.impl("bernoulli_.float", TORCH_FN(bernoulli_));
  m.impl("bernoulli_.Tensor", TORCH_FN(bernoulli_tensor_));
  m.impl("bernoulli.out", TORCH_FN(bernoulli_out));
  m.impl("native_dropout", TORCH_FN(native_dropout));
  m.impl("_fused_dropout", TORCH_FN(fused_dropout));
  m.impl("rrelu_with_noise", TORCH_FN(rrelu));
  m.impl("rrelu_with_noise_", TORCH_FN(rrelu_));
  m.impl("rrelu_with_noise.out", TORCH_FN(rrelu_out));
}

}  // namespace
}  // namespace xpurt
