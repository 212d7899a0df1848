#include "op/argument_types.h"

namespace xpurt {
namespace {

using c10::TypeKind;

// The type of the elements of a list, or of an optional list; nullptr for other types.
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

TypeKind kind_of(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.type();
  if (type->kind() != TypeKind::OptionalType) return type->kind();
  return type->castRaw<c10::OptionalType>()->getElementType()->kind();
}

bool is_tensor(const c10::Argument& argument) {
  return kind_of(argument) == TypeKind::TensorType;
}

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
      // Types and layouts are integers in the schema.
      return argument.name() == "dtype" || argument.name() == "layout" ||
             argument.name() == "memory_format";
  }
}

bool is_beyond_int(const c10::Argument& argument, const c10::IValue& value) {
  constexpr std::string_view kNames[] = {"kernel_size", "stride", "padding",
                                         "dilation"};
  return value.isIntList() &&
         std::ranges::find(kNames, argument.name()) != std::end(kNames) &&
         std::ranges::any_of(value.toIntVector(), [](int64_t each) {
           return static_cast<int>(each) != each;
         });
}

}  // namespace xpurt
