// The element types of kernels, and the letters that stand for them in the names of
// kernels.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

namespace xpurt {

// 'f', 'd', 'h' (half), 'b' (bfloat16), 'c', 's', 'i', 'l' (int8 to int64), 'u'
// (uint8), 't' (bool), 'x', 'z' (complex of float and double), or 0 for a type that no
// kernel supports.
char letter_of(c10::ScalarType type) noexcept;

// The type in which values of `type` are computed: float for half and bfloat16.
c10::ScalarType computed_in(c10::ScalarType type) noexcept;

// Whether values of `type` are doubles, or complex numbers of doubles.
bool is_double(c10::ScalarType type) noexcept;

// Whether `type` is that of results about elements: an index (int32, int64) or a bool.
bool is_index_or_bool(c10::ScalarType type) noexcept;

// Whether `scalar` can be passed to a kernel that computes in `type`. A complex scalar
// needs a complex type. An integer must be within the type's range.
bool scalar_fits(const c10::Scalar& scalar, c10::ScalarType type) noexcept;

// The same, and the number is not beyond the largest one of a floating-point type:
// PyTorch converts some numbers to the type of the tensors, and refuses those.
bool converts(const c10::Scalar& scalar, c10::ScalarType type) noexcept;

}  // namespace xpurt
