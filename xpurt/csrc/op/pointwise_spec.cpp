#include "op/pointwise_spec.h"

#include <algorithm>

namespace xpurt {
namespace {

using c10::TypeKind;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_number(TypeKind kind) {
  return kind == TypeKind::NumberType || kind == TypeKind::FloatType ||
         kind == TypeKind::IntType;
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// Names of the arguments that are tensors in any of the overloads, in order.
std::vector<std::string> operand_names(
    const std::vector<c10::OperatorHandle>& overloads) {
  std::vector<std::string> names;
  // The overload with the most tensors gives the order.
  const auto tensors = [](const c10::OperatorHandle& op) {
    const auto& arguments = op.schema().arguments();
    return std::count_if(arguments.begin(), arguments.end(),
                         [](const auto& a) { return is_tensor(a) && !a.is_out(); });
  };
  auto ordered = overloads;
  std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    return tensors(a) > tensors(b);
  });
  for (const c10::OperatorHandle& op : ordered) {
    for (const c10::Argument& argument : op.schema().arguments()) {
      if (!is_tensor(argument) || argument.is_out()) continue;
      if (!contains(names, argument.name())) names.push_back(argument.name());
    }
  }
  return names;
}

}  // namespace

PointwiseSpec::PointwiseSpec(RowFields& fields)
    : RowSpec(fields),
      compute(take_compute_rule(fields)),
      result(take_result_rule(fields)),
      conditions(fields.take<int64_t>("conditions")),
      uses(fields.take<int64_t>("uses")),
      zero_dim(fields.take<int64_t>("zero_dim")),
      leading(static_cast<int>(fields.take<int64_t>("leading"))),
      same_type(fields.take<bool>("same_type")),
      raises_on_zero(fields.take<bool>("raises_on_zero")),
      raises_on_negative(fields.take<bool>("raises_on_negative")),
      converts_scalars(fields.take<bool>("converts_scalars")),
      params(fields.take<RowFields::Strings>("params")),
      variants(fields.take<RowFields::Strings>("variants")),
      ignored(fields.take<RowFields::Strings>("ignored")) {}

bool bind(const PointwiseSpec& spec, const Overload& overload, Binding* binding) {
  const std::vector<std::string> operands = operand_names(overload.all);
  const auto& arguments = overload.schema().arguments();
  binding->operands = static_cast<int>(operands.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    const TypeKind kind = kind_of(argument);
    const std::string& name = argument.name();
    if (is_written(argument)) binding->output = static_cast<int>(i);
    if (argument.is_out()) {
      binding->slots.push_back({Slot::output});
    } else if (const int k = index_of(operands, name); k >= 0) {
      if (kind != TypeKind::TensorType && !is_number(kind)) return false;
      binding->slots.push_back({Slot::operand, k});
    } else if (const int p = index_of(spec.params, name); p >= 0 && is_number(kind)) {
      binding->slots.push_back({Slot::param, p});
    } else if (contains(spec.ignored, name)) {
      binding->slots.push_back({Slot::ignored});
    } else if (!spec.variants.empty() &&
               (kind == TypeKind::StringType || kind == TypeKind::BoolType)) {
      binding->slots.push_back({Slot::variant});
    } else {
      return false;
    }
  }
  // A row with variants serves only the overloads with a variant argument.
  const auto is_variant = [](const Slot& slot) { return slot.role == Slot::variant; };
  return spec.variants.empty() ||
         std::any_of(binding->slots.begin(), binding->slots.end(), is_variant);
}

}  // namespace xpurt
