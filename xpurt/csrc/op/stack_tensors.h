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

// `value` with `change` applied to the tensors in it. A list is copied, unless
// `in_place`.
template <typename Change>
c10::IValue with_tensors(c10::IValue value, const Change& change, bool in_place) {
  if (value.isTensor()) return change(std::move(value).toTensor());
  if (!value.isList()) return value;
  const auto elements = value.toListRef();
  if (elements.empty()) return value;
  auto list = value.toList();
  if (!in_place) list = list.copy();
  for (size_t i = 0; i < elements.size(); ++i) {
    const c10::IValue& element = elements[i];
    if (!element.isTensor() && !element.isList() && !element.isNone()) break;
    list.set(i, with_tensors(element, change, in_place));
  }
  return in_place ? value : c10::IValue(std::move(list));
}

}  // namespace xpurt
