#include "onednn/post_ops.h"

#include <c10/util/Exception.h>

namespace xpurt {
namespace {

using dnnl::algorithm;

struct Named {
  const char* name;
  algorithm function;
};
constexpr Named kFunctions[] = {
    {"relu", algorithm::eltwise_relu},
    {"leaky_relu", algorithm::eltwise_relu},
    {"clamp", algorithm::eltwise_clip},
    {"gelu", algorithm::eltwise_gelu_erf},
    {"gelu_tanh", algorithm::eltwise_gelu_tanh},
    {"silu", algorithm::eltwise_swish},
    {"sigmoid", algorithm::eltwise_logistic},
    {"tanh", algorithm::eltwise_tanh},
    {"hardswish", algorithm::eltwise_hardswish},
};

algorithm function_of(const std::string& name) {
  for (const Named& each : kFunctions) {
    if (name == each.name) return each.function;
  }
  TORCH_CHECK_VALUE(false, "no activation is called ", name);
}

}  // namespace

dnnl::post_ops post_ops_of(const Layout& other, const Activation& activation) {
  dnnl::post_ops after;
  if (other.get_ndims() > 0) after.append_binary(algorithm::binary_add, other);
  const std::string& name = activation.name;
  if (name == "none") return after;
  auto alpha = static_cast<float>(activation.alpha);
  auto beta = static_cast<float>(activation.beta);
  if (name == "silu") alpha = 1;
  if (name == "hardswish") {
    alpha = 1.0F / 6;
    beta = 0.5F;
  }
  after.append_eltwise(function_of(name), alpha, beta);
  return after;
}

}  // namespace xpurt
