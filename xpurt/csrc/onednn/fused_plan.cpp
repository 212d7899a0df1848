#include "onednn/fused_plan.h"

#include "onednn/device.h"
#include "onednn/post_ops.h"

namespace xpurt {

using at::Tensor;

std::string fused_key(const char* name, const FusedOperands& of, bool by_strides) {
  std::string key = name + of.activation.name;
  add_to_key(&key, of.activation.alpha);
  add_to_key(&key, of.activation.beta);
  add_to_key(&key, of.bias.defined());
  add_to_key(&key, of.other.defined());
  add_to_key(&key, of.is_packed());
  add_to_key(&key, !of.is_packed() && by_strides);
  add_to_key(&key, of.input.scalar_type());
  add_to_key(&key, of.weight_sizes);
  return key;
}

dnnl::primitive_attr fused_attributes(const FusedOperands& of, const Layout& output) {
  dnnl::primitive_attr attributes = onednn_attributes();
  attributes.set_post_ops(
      post_ops_of(of.other.defined() ? output : Layout(), of.activation));
  return attributes;
}

OnednnPlan make_fused_plan(const dnnl::engine& engine, const char* name,
                           const dnnl::primitive_desc& descriptor,
                           const FusedOperands& of, FusedLayouts layouts) {
  if (!is_of_use(descriptor)) return {};
  if (of.is_packed()) {
    layouts.weight = descriptor.query_md(dnnl::query::exec_arg_md, DNNL_ARG_WEIGHTS);
  }
  std::vector<OnednnPlan::Argument> arguments{
      {DNNL_ARG_SRC, layouts.input, Access::read},
      {DNNL_ARG_WEIGHTS, layouts.weight, Access::read},
      {DNNL_ARG_DST, layouts.output, Access::write}};
  if (of.bias.defined()) {
    arguments.push_back({DNNL_ARG_BIAS, layouts.bias, Access::read});
  }
  if (of.other.defined()) {
    constexpr int kOther = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    arguments.push_back({kOther, layouts.output, Access::read});
  }
  return make_plan(engine, name, descriptor, std::move(arguments));
}

c10::SmallVector<Tensor, 5> fused_tensors(const FusedOperands& of, const Tensor& input,
                                          const Tensor& weight, const Tensor& output,
                                          const Tensor& other) {
  c10::SmallVector<Tensor, 5> tensors{input, weight, output};
  if (of.bias.defined()) tensors.push_back(of.bias.contiguous());
  if (of.other.defined()) tensors.push_back(other);
  return tensors;
}

}  // namespace xpurt
