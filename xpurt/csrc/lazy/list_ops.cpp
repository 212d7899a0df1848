#include "lazy/list_ops.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::lazy::Shape;

// In traced_graph.py, too.
const std::unordered_set<std::string_view> kListOps{"aten::_foreach_add.List",
                                                    "aten::_foreach_add.Scalar",
                                                    "aten::_foreach_add.ScalarList",
                                                    "aten::_foreach_sub.List",
                                                    "aten::_foreach_sub.Scalar",
                                                    "aten::_foreach_sub.ScalarList",
                                                    "aten::_foreach_mul.List",
                                                    "aten::_foreach_mul.Scalar",
                                                    "aten::_foreach_mul.ScalarList",
                                                    "aten::_foreach_div.List",
                                                    "aten::_foreach_div.Scalar",
                                                    "aten::_foreach_div.ScalarList",
                                                    "aten::_foreach_addcmul.Scalar",
                                                    "aten::_foreach_addcmul.ScalarList",
                                                    "aten::_foreach_addcdiv.Scalar",
                                                    "aten::_foreach_addcdiv.ScalarList",
                                                    "aten::_foreach_lerp.Scalar",
                                                    "aten::_foreach_lerp.List",
                                                    "aten::_foreach_maximum.List",
                                                    "aten::_foreach_sqrt",
                                                    "aten::_foreach_neg",
                                                    "aten::_foreach_reciprocal"};

bool is_real_number(const IValue& value) {
  return value.isDouble() || value.isInt() || value.isBool();
}

// Whether each tensor has the sizes and the dtype of the one in the first list.
bool are_alike(c10::ArrayRef<IValue> list, c10::ArrayRef<IValue> first) {
  return std::ranges::equal(list, first, [](const IValue& one, const IValue& other) {
    if (!one.isTensor()) return false;
    const Tensor &a = one.toTensor(), &b = other.toTensor();
    return a.defined() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes();
  });
}

}  // namespace

bool is_list_op(const OperatorHandle& op) {
  return op.schema().name().starts_with("aten::_foreach_") &&
         kListOps.contains(toString(op.operator_name()));
}

std::optional<OperatorHandle> list_op_behind(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (!name.starts_with("aten::_foreach_") || !name.ends_with('_')) return std::nullopt;
  const auto found = c10::Dispatcher::singleton().findSchema(
      {name.substr(0, name.size() - 1), op.schema().overload_name()});
  return found.has_value() && is_list_op(*found) ? found : std::nullopt;
}

std::optional<std::vector<Shape>> shapes_of_list_op(const OperatorHandle& op,
                                                    const torch::jit::Stack& stack) {
  const auto given = torch::jit::last(stack, op.schema().arguments().size());
  if (!given[0].isTensorList() || given[0].toListRef().empty()) return std::nullopt;
  const auto first = given[0].toListRef();
  for (const IValue& each : given) {
    if (is_real_number(each)) continue;
    if (!each.isList()) return std::nullopt;
    const auto list = each.toListRef();
    const bool are_numbers =
        list.size() == first.size() && std::ranges::all_of(list, is_real_number);
    if (!are_numbers && !are_alike(list, first)) return std::nullopt;
  }
  std::vector<Shape> found;
  for (const IValue& each : first) {
    const Tensor& tensor = each.toTensor();
    // A number may give another type to integers.
    if (!at::isFloatingType(tensor.scalar_type())) return std::nullopt;
    found.emplace_back(tensor.scalar_type(), tensor.sizes());
  }
  return found;
}

std::vector<c10::Scalar> numbers_of(const IValue& argument) {
  if (argument.isScalar()) return {argument.toScalar()};
  std::vector<c10::Scalar> found;
  if (argument.isList()) {
    for (const IValue& each : argument.toListRef()) {
      if (!each.isScalar()) return {};
      found.push_back(each.toScalar());
    }
  }
  return found;
}

}  // namespace xpurt
