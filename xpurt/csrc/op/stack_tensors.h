// The tensors among the arguments of an op.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace xpurt {

// Calls `visit` with every tensor in the value, including undefined tensors and tensors
// in lists.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    visit(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isTensor() && !element.isList() && !element.isNone()) return;
      for_each_tensor(element, visit);
    }
  }
}

}  // namespace xpurt
