#include "rows/activation.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

namespace xpurt {

at::Tensor activate(at::Tensor values, const Activation& activation) {
  const std::string& name = activation.name;
  if (name == "none") return values;
  if (name == "relu") return at::relu_(values);
  if (name == "leaky_relu") return at::leaky_relu_(values, activation.alpha);
  if (name == "clamp") return at::clamp_(values, activation.alpha, activation.beta);
  if (name == "gelu") return at::gelu(values, "none");
  if (name == "gelu_tanh") return at::gelu(values, "tanh");
  if (name == "silu") return at::silu_(values);
  if (name == "sigmoid") return at::sigmoid_(values);
  if (name == "tanh") return at::tanh_(values);
  if (name == "hardswish") return at::hardswish_(values);
  TORCH_CHECK_VALUE(false, "no activation is called ", name);
}

}  // namespace xpurt
