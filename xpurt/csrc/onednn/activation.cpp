// The table of activations: what oneDNN and PyTorch call them. Another one is a row
// here and in xpurt/functional/activations.py.
#include "onednn/activation.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include "onednn/post_ops.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::algorithm;

struct Function {
  const char* name;
  algorithm primitive;
  Tensor (*apply)(Tensor& values, double alpha, double beta);
  // Of the primitive, where it has numbers that are not the activation's.
  float alpha = 0, beta = 0;
};
constexpr Function kFunctions[] = {
    {"none", algorithm::undef, [](Tensor& x, double, double) { return x; }},
    {"relu", algorithm::eltwise_relu,
     [](Tensor& x, double, double) { return at::relu_(x); }},
    {"leaky_relu", algorithm::eltwise_relu,
     [](Tensor& x, double slope, double) { return at::leaky_relu_(x, slope); }},
    {"elu", algorithm::eltwise_elu,
     [](Tensor& x, double alpha, double) { return at::elu_(x, alpha); }},
    {"clamp", algorithm::eltwise_clip,
     [](Tensor& x, double low, double high) { return at::clamp_(x, low, high); }},
    {"gelu", algorithm::eltwise_gelu_erf,
     [](Tensor& x, double, double) { return at::gelu(x, "none"); }},
    {"gelu_tanh", algorithm::eltwise_gelu_tanh,
     [](Tensor& x, double, double) { return at::gelu(x, "tanh"); }},
    {"silu", algorithm::eltwise_swish,
     [](Tensor& x, double, double) { return at::silu_(x); }, 1},
    {"sigmoid", algorithm::eltwise_logistic,
     [](Tensor& x, double, double) { return at::sigmoid_(x); }},
    {"tanh", algorithm::eltwise_tanh,
     [](Tensor& x, double, double) { return at::tanh_(x); }},
    {"hardswish", algorithm::eltwise_hardswish,
     [](Tensor& x, double, double) { return at::hardswish_(x); }, 1.0F / 6, 0.5F},
};

const Function& function_of(const Activation& activation) {
  for (const Function& each : kFunctions) {
    if (activation.name == each.name) return each;
  }
  TORCH_CHECK_VALUE(false, "no activation is called ", activation.name);
}

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Function& each : kFunctions) names.emplace_back(each.name);
  return names;
}

Tensor activate(Tensor values, const Activation& activation) {
  return function_of(activation).apply(values, activation.alpha, activation.beta);
}

dnnl::post_ops post_ops_of(const Layout& other, const Activation& activation) {
  dnnl::post_ops after;
  if (other.get_ndims() > 0) after.append_binary(algorithm::binary_add, other);
  const Function& function = function_of(activation);
  if (function.primitive == algorithm::undef) return after;
  const bool has_own = function.alpha != 0;
  after.append_eltwise(function.primitive,
                       has_own ? function.alpha : static_cast<float>(activation.alpha),
                       has_own ? function.beta : static_cast<float>(activation.beta));
  return after;
}

}  // namespace xpurt
