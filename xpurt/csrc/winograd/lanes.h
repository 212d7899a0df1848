// 16 adjacent channels in a register.
#pragma once

#include <cstdint>

#include "winograd/tiles.h"

// Functions of lanes are compiled for AVX-512, whatever the rest is compiled for. On
// other processors has_lanes() is false, and they are not to be called.
#if defined(__x86_64__) && defined(__clang__)
#define OF_LANES __attribute__((target("avx512f,fma")))
#elif defined(__x86_64__)
#define OF_LANES \
  __attribute__((target("avx512f,fma"), optimize("O3", "fp-contract=fast")))
#else
#define OF_LANES
#endif
#define INLINE_OF_LANES OF_LANES __attribute__((always_inline)) inline

namespace xpurt {

constexpr int64_t kLanes = kBlock;

using Lanes = float __attribute__((vector_size(64)));

// The same at any address, over floats.
using LanesAnywhere = float __attribute__((vector_size(64), aligned(4), may_alias));

inline bool has_lanes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

INLINE_OF_LANES void load(Lanes& lanes, const float* from) {
  lanes = *reinterpret_cast<const LanesAnywhere*>(from);
}

INLINE_OF_LANES void store(float* to, const Lanes& lanes) {
  *reinterpret_cast<LanesAnywhere*>(to) = lanes;
}

}  // namespace xpurt
