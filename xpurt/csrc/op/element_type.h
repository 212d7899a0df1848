// The element types that kernels know, by the letters that stand for them in the
// names of kernels.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

namespace xpurt {

// 'f', 'd', 'h' (half), 'b' (bfloat16), 'c', 's', 'i', 'l' (int8 to int64), 'u'
// (uint8), 't' (bool), 'x', 'z' (complex of float and double), or 0 for a type that no
// kernel knows.
char letter_of(c10::ScalarType type) noexcept;

// The type in which values of `type` are computed: float for half and bfloat16.
c10::ScalarType computed_in(c10::ScalarType type) noexcept;

// Whether values of `type` are doubles, or complex numbers of them.
bool is_double(c10::ScalarType type) noexcept;

// Whether values of `type` are what ops say of elements: their places, or a bool.
bool is_place_or_answer(c10::ScalarType type) noexcept;

// Whether `scalar` can be passed to a kernel that computes in `type`: it is complex
// only if the type is, and an integer is within the type's range.
bool scalar_fits(const c10::Scalar& scalar, c10::ScalarType type) noexcept;

}  // namespace xpurt
