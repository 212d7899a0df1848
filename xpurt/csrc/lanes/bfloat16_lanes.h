// Rows of bfloat16, part of lanes.h.
using Bits = uint32_t __attribute__((vector_size(4 * LANES)));
using HalfBits = uint16_t __attribute__((vector_size(2 * LANES)));
using HalfBitsAnywhere =
    uint16_t __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

static OF_LANES void widen_row(const uint16_t* from, int64_t size, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const HalfBits half = *reinterpret_cast<const HalfBitsAnywhere*>(from + i);
    const Bits bits = __builtin_convertvector(half, Bits) << 16;
    Lanes values;
    __builtin_memcpy(&values, &bits, sizeof(bits));
    store(to + i, values);
  }
  for (; i < size; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    __builtin_memcpy(to + i, &bits, sizeof(bits));
  }
}

// To the nearest, of two the even one; NaN stays NaN.
INLINE_OF_LANES HalfBits narrowed(const Lanes& values) {
  Bits bits;
  __builtin_memcpy(&bits, &values, sizeof(bits));
  const Bits rounded = bits + 0x7fff + (bits >> 16 & 1);
  const Bits quiet = bits | 0x400000;
  return __builtin_convertvector((values == values ? rounded : quiet) >> 16, HalfBits);
}

static OF_LANES void narrow_row(const float* from, int64_t size, float factor,
                                uint16_t* to) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes values;
    load(values, from + i);
    *reinterpret_cast<HalfBitsAnywhere*>(to + i) = narrowed(values * factor);
  }
  if (i == size) return;
  Lanes rest{};
  for (int64_t at = i; at < size; ++at) rest[at - i] = from[at];
  const HalfBits half = narrowed(rest * factor);
  for (int64_t at = i; at < size; ++at) to[at] = half[at - i];
}
