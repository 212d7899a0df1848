#include "row_spec.h"

#include "element_type.h"
#include "stream.h"

#include <algorithm>

namespace xpurt {
namespace {

using c10::TypeKind;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The kind of an argument's type, of what is inside an optional.
TypeKind kind_of(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.type();
  if (type->kind() != TypeKind::OptionalType) return type->kind();
  return type->castRaw<c10::OptionalType>()->getElementType()->kind();
}

bool is_number(TypeKind kind) {
  return kind == TypeKind::NumberType || kind == TypeKind::FloatType ||
         kind == TypeKind::IntType;
}

bool one_tensor_returned(const c10::FunctionSchema& schema) {
  return schema.returns().size() == 1 && is_tensor(schema.returns()[0]);
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

// Rows name ops of aten without the namespace, and others with theirs.
std::string full_name(const std::string& name) {
  return name.find("::") == std::string::npos ? "aten::" + name : name;
}

// Every overload of the rows' ops, by name.
using Overloads = std::unordered_map<std::string, std::vector<c10::OperatorHandle>>;

Overloads find_overloads(const std::vector<RowSpec>& specs) {
  Overloads found;
  for (const RowSpec& spec : specs) {
    found.try_emplace(full_name(spec.name));
    found.try_emplace(full_name(spec.name) + "_");
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto wanted = found.find(name.name);
    if (wanted == found.end()) continue;
    const auto handle = dispatcher.findSchema(name);
    if (!handle.has_value()) continue;
    // A kernel on the XPU key would take the gradient formula from an op that is
    // differentiated through its parts. One that the CPU has a kernel for is not.
    constexpr auto kComposite = c10::DispatchKey::CompositeImplicitAutograd;
    if (handle->hasKernelForDispatchKey(kComposite) &&
        !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      continue;
    }
    wanted->second.push_back(*handle);
  }
  return found;
}

std::unique_ptr<RowKernel> make(const RowSpec& spec, const c10::OperatorHandle& op,
                                const std::vector<c10::OperatorHandle>& overloads,
                                const std::vector<std::string>& operands) {
  const c10::FunctionSchema& schema = op.schema();
  if (!spec.overloads.empty() && !contains(spec.overloads, schema.overload_name())) {
    return nullptr;
  }
  if (spec.kind == "decomposed") return make_decomposed(spec, op, overloads);
  if (spec.kind == "convolution") return make_convolution(spec, op, overloads);
  if (spec.kind == "attention") return make_attention(spec, schema);
  if (spec.kind == "recurrent") return make_recurrent(spec);
  if (spec.kind == "steps") return make_steps(spec, schema);
  if (!one_tensor_returned(schema)) return nullptr;
  if (spec.kind == "reduction") return make_reduction(spec, schema);
  if (spec.kind == "softmax") return make_softmax(spec, schema);
  if (spec.kind == "matmul") return make_matmul(spec, schema);
  Binding binding;
  if (!bind(spec, schema, operands, &binding)) return nullptr;
  return make_pointwise(spec, std::move(binding));
}

}  // namespace

bool is_tensor(const c10::Argument& argument) {
  return kind_of(argument) == TypeKind::TensorType;
}

namespace {

// The type of the elements of a list or of None; nullptr: not a list.
c10::TypePtr element_of(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.type();
  if (kind_of(argument) != TypeKind::ListType) return nullptr;
  const auto* list = type->kind() == TypeKind::ListType
                         ? type->castRaw<c10::ListType>()
                         : type->castRaw<c10::OptionalType>()
                               ->getElementType()
                               ->castRaw<c10::ListType>();
  return list->getElementType();
}

}  // namespace

bool is_optional_tensor_list(const c10::Argument& argument) {
  const c10::TypePtr element = element_of(argument);
  return element != nullptr && element->kind() == TypeKind::OptionalType &&
         element->castRaw<c10::OptionalType>()->getElementType()->kind() ==
             TypeKind::TensorType;
}

bool is_tensor_list(const c10::Argument& argument) {
  const c10::TypePtr element = element_of(argument);
  return is_optional_tensor_list(argument) ||
         (element != nullptr && element->kind() == TypeKind::TensorType);
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool is_of_no_kernel(const c10::Argument& argument) {
  switch (kind_of(argument)) {
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::DeviceObjType:
    case TypeKind::MemoryFormatType:
    case TypeKind::GeneratorType:
      return true;
    default:
      // Types and layouts are integers to the schema.
      return argument.name() == "dtype" || argument.name() == "layout" ||
             argument.name() == "memory_format";
  }
}

std::vector<std::string> operand_names(
    const std::vector<c10::OperatorHandle>& overloads) {
  std::vector<std::string> names;
  // The overload with the most tensors gives the order.
  const auto tensors = [](const c10::OperatorHandle& op) {
    const auto& arguments = op.schema().arguments();
    return std::count_if(arguments.begin(), arguments.end(), [](const auto& a) {
      return kind_of(a) == TypeKind::TensorType && !a.is_out();
    });
  };
  auto ordered = overloads;
  std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    return tensors(a) > tensors(b);
  });
  for (const c10::OperatorHandle& op : ordered) {
    for (const c10::Argument& argument : op.schema().arguments()) {
      if (kind_of(argument) != TypeKind::TensorType || argument.is_out()) continue;
      if (!contains(names, argument.name())) names.push_back(argument.name());
    }
  }
  return names;
}

bool bind(const RowSpec& spec, const c10::FunctionSchema& schema,
          const std::vector<std::string>& operand_names, Binding* binding) {
  const auto& arguments = schema.arguments();
  binding->operands = static_cast<int>(operand_names.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = arguments[i];
    const TypeKind kind = kind_of(argument);
    const std::string& name = argument.name();
    if (is_written(argument)) binding->output = static_cast<int>(i);
    if (argument.is_out()) {
      binding->slots.push_back({Slot::output});
    } else if (const int k = index_of(operand_names, name); k >= 0) {
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
  // Rows by variant are for the overloads that have one.
  const auto is_variant = [](const Slot& slot) { return slot.role == Slot::variant; };
  return spec.variants.empty() ||
         std::any_of(binding->slots.begin(), binding->slots.end(), is_variant);
}

namespace {

// Leaked: kernels refer to their rows for the life of the process.
const std::vector<RowSpec>* all_rows = nullptr;

// Kernels write a row's number, counted from 1, where they find a wrong index.
void raise_fault_of(int32_t number) {
  const auto row = static_cast<size_t>(number - 1);
  const bool known = all_rows != nullptr && row < all_rows->size();
  TORCH_CHECK(!known || (*all_rows)[row].fault.empty(), (*all_rows)[row].fault,
              ", in work that was submitted earlier: its result is not to be used");
  TORCH_CHECK_INDEX(false, "index out of range in ",
                    known ? full_name((*all_rows)[row].name) : "?",
                    ", which was submitted earlier: its result is not to be used");
}

}  // namespace

bool takes_type(const RowSpec& spec, c10::ScalarType type, c10::ScalarType first,
                bool is_out) {
  const bool wants_first = spec.same_type || (is_out && !is_place_or_answer(type));
  return !wants_first || type == first;
}

RowPrior prior_of(const RowSpec& spec) {
  RowPrior prior;
  prior.row = spec.index;
  prior.cost_class = spec.cost_class;
  return prior;
}

RowPrior prior_of_asked(const RowSpec& spec, double build_us) {
  RowPrior prior = prior_of(spec);
  prior.by_operands = false;
  prior.build_us = build_us;
  return prior;
}

void add_rows(std::vector<RowSpec> specs) {
  auto* kept = new std::vector<RowSpec>(std::move(specs));
  all_rows = kept;
  set_fault(&raise_fault_of);
  const Overloads overloads = find_overloads(*kept);
  for (const RowSpec& spec : *kept) {
    std::vector<c10::OperatorHandle> all = overloads.at(full_name(spec.name));
    const auto& in_place = overloads.at(full_name(spec.name) + "_");
    all.insert(all.end(), in_place.begin(), in_place.end());
    const std::vector<std::string> operands = operand_names(all);
    for (const c10::OperatorHandle& op : all) {
      auto made = make(spec, op, all, operands);
      if (made) set_row(op, made.release());
    }
  }
}

}  // namespace xpurt
