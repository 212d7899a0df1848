// The tensors of one call of a custom kernel.
#pragma once

#include "op/custom_kernel_arguments.h"
#include "op/custom_kernel_spec.h"

namespace xpurt {

// The tensors that are read, in the order of the schema, then those that are written.
struct CustomKernelCall {
  std::vector<NamedTensor> tensors;
  c10::Device device{c10::DeviceType::XPU, 0};
  c10::ScalarType type = c10::ScalarType::Undefined;  // of the first tensor

  const at::Tensor& named(const std::string& name) const;
  // nullptr if no tensor has that name, or if it is not given.
  const at::Tensor* find(const std::string& name) const;

  // Copies the arguments that the steps need contiguous, or in one memory format.
  void arrange(const CustomKernelSpec& spec);
  void add_scratch(const CustomKernelSpec& spec);
};

inline bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace xpurt
