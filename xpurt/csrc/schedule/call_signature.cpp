#include "schedule/call_signature.h"

#include <array>
#include <bit>
#include <cmath>

#include "op/element_type.h"

namespace xpurt {
namespace {

constexpr char kLetters[kSignatureTypes + 1] = "fdhbcsilut?";

// The index of each type's letter in kLetters: a table for the hot path.
constexpr size_t kScalarTypes = static_cast<size_t>(c10::ScalarType::NumOptions);
const std::array<uint8_t, kScalarTypes> kTypeIndices = [] {
  std::array<uint8_t, kScalarTypes> indices{};
  for (size_t i = 0; i < kScalarTypes; ++i) {
    const char letter = letter_of(static_cast<c10::ScalarType>(i));
    const auto* last = kLetters + kSignatureTypes - 1;
    indices[i] = static_cast<uint8_t>(std::find(kLetters, last, letter) - kLetters);
  }
  return indices;
}();

size_t type_index(c10::ScalarType type) {
  const auto i = static_cast<size_t>(type);
  return i < kScalarTypes ? kTypeIndices[i] : kSignatureTypes - 1;
}

}  // namespace

size_t size_class_of(int64_t elements) {
  const int log2 = std::bit_width(static_cast<uint64_t>(elements)) - 1;
  return std::clamp(log2, kMinSizeLog2, kMaxSizeLog2) - kMinSizeLog2;
}

size_t type_layout_of(const CallSignature& signature) {
  return type_index(signature.type()) * kLayouts +
         static_cast<size_t>(signature.layout());
}

char letter_at(size_t type_layout) {
  return kLetters[type_layout / kLayouts];
}

double elements_in(size_t size_class) {
  return std::exp2(static_cast<double>(size_class + kMinSizeLog2) + 0.5);
}

}  // namespace xpurt
