#include "op/element_type.h"

#include <c10/util/overflows.h>

#include <cmath>
#include <limits>

namespace xpurt {

using c10::ScalarType;

char letter_of(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::Float:
      return 'f';
    case ScalarType::Double:
      return 'd';
    case ScalarType::Half:
      return 'h';
    case ScalarType::BFloat16:
      return 'b';
    case ScalarType::Char:
      return 'c';
    case ScalarType::Short:
      return 's';
    case ScalarType::Int:
      return 'i';
    case ScalarType::Long:
      return 'l';
    case ScalarType::Byte:
      return 'u';
    case ScalarType::Bool:
      return 't';
    case ScalarType::ComplexFloat:
      return 'x';
    case ScalarType::ComplexDouble:
      return 'z';
    default:
      return 0;
  }
}

ScalarType computed_in(ScalarType type) noexcept {
  const bool narrow = type == ScalarType::Half || type == ScalarType::BFloat16;
  return narrow ? ScalarType::Float : type;
}

bool is_double(ScalarType type) noexcept {
  return c10::toRealValueType(type) == ScalarType::Double;
}

bool is_index_or_bool(c10::ScalarType type) noexcept {
  return type == ScalarType::Long || type == ScalarType::Int ||
         type == ScalarType::Bool;
}

namespace {

template <typename T>
bool within(int64_t value) {
  return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
         value <= static_cast<int64_t>(std::numeric_limits<T>::max());
}

}  // namespace

bool scalar_fits(const c10::Scalar& scalar, ScalarType type) noexcept {
  if (scalar.isSymbolic()) return false;
  if (c10::isComplexType(type)) return true;
  if (scalar.isComplex()) return false;
  if (c10::isFloatingType(type) || type == ScalarType::Bool) return true;
  if (scalar.isFloatingPoint()) {
    const double value = scalar.toDouble();
    if (!(value > -9.2e18 && value < 9.2e18)) return false;
    return scalar_fits(c10::Scalar(static_cast<int64_t>(value)), type);
  }
  if (scalar.isBoolean()) return true;
  if (scalar.type() == ScalarType::UInt64) return false;  // above int64's range
  const int64_t value = scalar.toLong();
  switch (type) {
    case ScalarType::Char:
      return within<int8_t>(value);
    case ScalarType::Short:
      return within<int16_t>(value);
    case ScalarType::Int:
      return within<int32_t>(value);
    case ScalarType::Byte:
      return within<uint8_t>(value);
    default:
      return true;
  }
}

bool converts(const c10::Scalar& scalar, ScalarType type) noexcept {
  if (!scalar_fits(scalar, type)) return false;
  if (!c10::isFloatingType(type)) return true;
  const double value = scalar.toDouble();
  if (!std::isfinite(value)) return true;
  switch (type) {
    case ScalarType::Half:
      return !c10::overflows<c10::Half, double>(value);
    case ScalarType::BFloat16:
      return !c10::overflows<c10::BFloat16, double>(value);
    case ScalarType::Float:
      return !c10::overflows<float, double>(value);
    default:
      return true;
  }
}

}  // namespace xpurt
