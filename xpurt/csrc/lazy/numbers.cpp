#include "lazy/numbers.h"

#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

namespace xpurt {
namespace {

bool is_defined(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined();
}

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Integers, floats and complex numbers, in this order.
int kind_of(c10::ScalarType type) {
  return c10::isComplexType(type) ? 2 : c10::isFloatingType(type) ? 1 : 0;
}

}  // namespace

void give_types_to_numbers(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  at::native::ResultTypeState all;
  int kind = 0;  // the highest one of tensors
  bool has_numbers = false;
  for (size_t at = first; at < stack->size(); ++at) {
    if (!is_defined((*stack)[at])) continue;
    const at::Tensor& each = (*stack)[at].toTensor();
    all = at::native::update_result_type_state(each, all);
    if (is_number(each)) {
      has_numbers = true;
    } else {
      kind = std::max(kind, kind_of(each.scalar_type()));
    }
  }
  if (!has_numbers) return;
  const c10::ScalarType type = at::native::result_type(all);
  for (size_t at = first; at < stack->size(); ++at) {
    c10::IValue& value = (*stack)[at];
    if (!is_defined(value) || !is_number(value.toTensor())) continue;
    if (kind_of(value.toTensor().scalar_type()) > kind)
      value = value.toTensor().to(type);
  }
}

std::optional<c10::OperatorHandle> overload_of_tensors(const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  const auto& arguments = op.schema().arguments();
  if ((overload != "Scalar" && overload != "Tensor_Scalar") || arguments.size() < 2 ||
      *arguments[0].type() != *c10::TensorType::get() ||
      *arguments[1].type() != *c10::NumberType::get()) {
    return std::nullopt;
  }
  const auto found = c10::Dispatcher::singleton().findSchema(
      {op.schema().name(), overload == "Scalar" ? "Tensor" : "Tensor_Tensor"});
  const bool is_same =
      found.has_value() && found->hasKernelForDispatchKey(c10::DispatchKey::Lazy) &&
      found->schema().arguments().size() == arguments.size() &&
      *found->schema().arguments()[1].type() == *c10::TensorType::get();
  return is_same ? found : std::nullopt;
}

bool is_number_made_tensor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const at::Tensor& self = (*stack)[first].toTensor();
  const c10::Scalar number = (*stack)[first + 1].toScalar();
  if (kind_of(number.type()) <= kind_of(self.scalar_type())) return false;
  (*stack)[first + 1] = at::scalar_tensor(number, at::result_type(self, number));
  return true;
}

}  // namespace xpurt
