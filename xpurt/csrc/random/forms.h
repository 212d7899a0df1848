// The functions of random numbers, compiled for the host from the kernels' source text:
// see Note [Random numbers] there.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "op/op_record.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
// Otherwise GCC contracts a product and a sum.
#pragma GCC optimize("fp-contract=off")
#endif

namespace xpurt {
namespace random_text {

using uint = uint32_t;
using ulong = uint64_t;

#define FUNCTION static inline
#define AS_REAL(bits) std::bit_cast<REAL>(static_cast<Bits>(bits))
#define AS_BITS(real) std::bit_cast<Bits>(static_cast<REAL>(real))

struct Single {
#define TWICE 0
#define REAL float
#define NUM(x) x##f
#include "../../kernels/sources/templates/random.cl"
#include "../../kernels/sources/templates/counts.cl"
#undef TWICE
#undef REAL
#undef NUM
};

struct Double {
#define TWICE 1
#define REAL double
#define NUM(x) x
#include "../../kernels/sources/templates/random.cl"
#include "../../kernels/sources/templates/counts.cl"
#undef TWICE
#undef REAL
#undef NUM
};

#undef FUNCTION
#undef AS_REAL
#undef AS_BITS

}  // namespace random_text

using random_text::Double;
using random_text::Single;

// The functions that compute an element of type T.
template <typename T>
using FunctionsFor = std::conditional_t<std::is_same_v<T, double>, Double, Single>;

// Kernels' texts use the name `long`, which is int64 in OpenCL C.
static_assert(sizeof(long) == 8);

// The host form of a row of random numbers, by the name of its op ("uniform_").
HostKernel random_form(const std::string& name);
HostKernel sample_form(const std::string& name);  // the forms in sample_forms.cpp

}  // namespace xpurt
