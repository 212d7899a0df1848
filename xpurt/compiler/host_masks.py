"""Booleans in code for the host.

PyTorch's vectors load and store a mask as booleans one element at a time, through arrays
on the stack. A graph that is trained stores one for each ReLU and dropout: on a processor
with AVX2 a compiled ReLU and its gradient took five times eager mode's time (an AMD EPYC,
2026-11-29). So the code of xpu's graphs has these conversions as instructions. Code for
CPU tensors stays PyTorch's.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from torch._inductor.virtualized import V

from xpurt.compiler import host_graph

_PREFIX: Final = "#include <torch/csrc/inductor/cpp_prefix.h>\n"

# A mask of float has all bits of an element set, or none. The count is that of the
# elements at the end of a loop.
_CONVERSIONS: Final = r"""
#if defined(CPU_CAPABILITY_AVX2)
#include <cstring>
namespace at::vec {
inline namespace CPU_CAPABILITY {
namespace xpurt {
inline void store_mask(__m256 mask, bool* to, int count) {
  const __m256i wide = _mm256_castps_si256(mask);
  const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                       _mm256_extracti128_si256(wide, 1));
  const long long bytes =
      _mm_cvtsi128_si64(_mm_packs_epi16(half, half)) & 0x0101010101010101;
  if (count >= 8) std::memcpy(to, &bytes, 8);
  else if (count > 0) std::memcpy(to, &bytes, count);
}
inline __m256 load_mask(const bool* from, int count) {
  long long bytes = 0;
  if (count >= 8) std::memcpy(&bytes, from, 8);
  else if (count > 0) std::memcpy(&bytes, from, count);
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes));
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}
template <int N>
inline VectorizedN<float, N> load_masks(const bool* from, int count) {
  VectorizedN<float, N> found;
  for (int i = 0; i < N; ++i) found[i] = load_mask(from + 8 * i, count - 8 * i);
  return found;
}
}  // namespace xpurt
#define XPURT_MASK(N)                                                               \
  template <>                                                                       \
  inline void VecMask<float, N>::store(bool* to, int count) {                       \
    for (int i = 0; i < N; ++i) xpurt::store_mask(mask_[i], to + 8 * i, count - 8 * i); \
  }                                                                                 \
  template <>                                                                       \
  template <>                                                                       \
  inline VecMask<float, N> VecMask<float, N>::from<const bool>(const bool* from,    \
                                                               int count) {         \
    return xpurt::load_masks<N>(from, count);                                       \
  }                                                                                 \
  template <>                                                                       \
  template <>                                                                       \
  inline VecMask<float, N> VecMask<float, N>::from<const bool>(const bool* from) {  \
    return xpurt::load_masks<N>(from, 8 * N);                                       \
  }
XPURT_MASK(1)
XPURT_MASK(2)
#undef XPURT_MASK
}  // namespace CPU_CAPABILITY
}  // namespace at::vec
#endif
"""


def define() -> None:
    """Changes what Inductor generates. Call it once."""
    from torch._inductor.codegen import cpp

    group = cpp.KernelGroup
    changed = _with_conversions(group.codegen_group)
    setattr(group, "codegen_group", changed)  # noqa: B010


def _with_conversions(before: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(before)
    def codegen_group(group: Any, name: str | None = None) -> str:
        code = before(group, name)
        lowered: Any = V.graph
        if "VecMask<float" not in code or not host_graph.is_for_host(lowered.module):
            return code
        return code.replace(_PREFIX, _PREFIX + _CONVERSIONS, 1)

    return codegen_group
