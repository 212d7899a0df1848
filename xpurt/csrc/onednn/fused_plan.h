// Plans for primitives of compiled graphs: see FusedOperands. Only for the .cpp files
// of onednn/.
#pragma once

#include <dnnl.hpp>

#include <string>

#include "onednn/fused_operands.h"
#include "onednn/plan.h"

namespace xpurt {

struct FusedLayouts {
  Layout input, weight, output;
  Layout bias;  // empty without a bias
};

// The part of a plan's key that the operands give. by_strides: what else tells the
// layout of a weight that is not packed.
std::string fused_key(const char* name, const FusedOperands& of, bool by_strides);

// Adds `other`, which has the layout of the result, and applies the activation.
dnnl::primitive_attr fused_attributes(const FusedOperands& of, const Layout& output);

// The plan. Its arguments are: input, weight, result, bias and other, as far as they
// exist. `layouts.weight` is that of a weight that is not packed.
OnednnPlan make_fused_plan(const dnnl::engine& engine, const char* name,
                           const dnnl::primitive_desc& descriptor,
                           const FusedOperands& of, FusedLayouts layouts);
constexpr size_t kFusedWeight = 1;  // the weight's place

// The tensors of these arguments; those given are dense.
c10::SmallVector<at::Tensor, 5> fused_tensors(const FusedOperands& of,
                                              const at::Tensor& input,
                                              const at::Tensor& weight,
                                              const at::Tensor& output,
                                              const at::Tensor& other);

}  // namespace xpurt
