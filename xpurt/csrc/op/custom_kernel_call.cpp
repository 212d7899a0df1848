#include "op/custom_kernel_call.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace xpurt {

using at::Tensor;
using c10::ScalarType;

const Tensor& CustomKernelCall::named(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [&](const NamedTensor& each) { return each.name == name; });
  TORCH_INTERNAL_ASSERT(found != tensors.end(), "no tensor is called ", name);
  return found->tensor;
}

const Tensor* CustomKernelCall::find(const std::string& name) const {
  for (const NamedTensor& each : tensors) {
    if (each.name == name && each.tensor.defined()) return &each.tensor;
  }
  return nullptr;
}

void CustomKernelCall::arrange(const CustomKernelSpec& spec) {
  std::optional<c10::MemoryFormat> format;
  for (const std::string& name : spec.dense) {
    for (NamedTensor& each : tensors) {
      if (each.name != name || !each.tensor.defined()) continue;
      if (!format.has_value()) format = each.tensor.suggest_memory_format();
      each.tensor = each.tensor.contiguous(*format);
    }
  }
  for (NamedTensor& each : tensors) {
    if (!each.tensor.defined() || !names(spec.contiguous, each.name)) continue;
    each.tensor = each.tensor.contiguous();
  }
}

void CustomKernelCall::add_scratch(const CustomKernelSpec& spec) {
  for (const Scratch& each : spec.scratch) {
    const Tensor like = named(each.like);
    if (!like.defined() || (each.of_halves && computed_in(type) == type)) {
      tensors.push_back({each.name, Tensor()});
      continue;
    }
    std::vector<int64_t> sizes = like.sizes().vec();
    if (!each.dims.empty()) {
      sizes.clear();
      for (const int64_t dim : each.dims) sizes.push_back(like.size(dim));
    }
    if (each.copies > 0) sizes.insert(sizes.begin(), each.copies);
    const auto to = each.integral ? ScalarType::Long : computed_in(type);
    tensors.push_back({each.name, at::empty(sizes, like.options().dtype(to))});
  }
}

}  // namespace xpurt
