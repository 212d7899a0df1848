// Rows of weights by AVX-512, part of block_rows.h.
//
// Note [Products of bytes]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// vpdpbusd multiplies 64 bytes without a sign by 64 with one, twice as many as
// vpdpwssd multiplies words, and weights of few bits are bytes after fewer instructions
// than words. So a word of an activation is multiplied as its high byte, which has a
// sign, and as its low byte, which has none: the sums are the same.
//
// Two rows that are far apart are read at once. The processor follows both, where of
// adjacent ones each would end soon.
#include "blocks/wide_formats.h"

// The activations of a sum, one after the other: high bytes, low bytes, 16 scales, and
// what the integers begin with, or for Centre::offset the sums of the activations.
template <typename Format>
struct WideUnit {
  static constexpr int kVectorBytes = 64 * Format::kVectors;
  static constexpr int kScales = 2 * kVectorBytes;
  static constexpr int kCentres = kScales + 64;
  static constexpr int kBytes = kCentres + 64;
};

template <typename Format>
OF_BLOCKS void write_unit(const int16_t* words, const PartScale* scales,
                          int64_t together, int sum, uint8_t* out) {
  using Unit = WideUnit<Format>;
  __m512i of_high = _mm512_setzero_si512(), of_low = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (int v = 0; v < Format::kVectors; ++v) {
    uint8_t *const high = out + 64 * v, *const low = high + Unit::kVectorBytes;
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int16_t* const from = words + Format::piece(sum, v, quarter);
      const __m256i read = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m128i bytes[] = {_mm256_cvtepi16_epi8(_mm256_srai_epi16(read, 8)),
                               _mm256_cvtepi16_epi8(read)};
      std::memcpy(high + 16 * quarter, &bytes[0], sizeof(bytes[0]));
      std::memcpy(low + 16 * quarter, &bytes[1], sizeof(bytes[1]));
    }
    of_high = _mm512_dpbusd_epi32(of_high, ones, _mm512_loadu_si512(high));
    of_low = _mm512_dpbusd_epi32(of_low, _mm512_loadu_si512(low), ones);
  }
  Four each;
  for (int quarter = 0; quarter < 4; ++quarter) {
    each[quarter] = scales[Format::piece(sum, 0, quarter) / (together * kPart)].scale;
  }
  const __m512 scale =
      _mm512_permutexvar_ps(in_quarters(0, 1, 2, 3), _mm512_castps128_ps512(each));
  _mm512_storeu_ps(out + Unit::kScales, scale);
  const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(of_high, 8), of_low);
  if constexpr (Format::kCentre == Centre::offset) {
    _mm512_storeu_ps(out + Unit::kCentres,
                     _mm512_mul_ps(scale, _mm512_cvtepi32_ps(all)));
  } else if constexpr (Format::kCentre == Centre::sign) {
    _mm512_storeu_si512(out + Unit::kCentres,
                        _mm512_mullo_epi32(of_high, _mm512_set1_epi32(-128 * 256)));
  } else {
    _mm512_storeu_si512(out + Unit::kCentres,
                        _mm512_mullo_epi32(all, _mm512_set1_epi32(-Format::kMiddle)));
  }
}

// Of a row of the weight and a row of activations. With Factors::eight the offsets of
// the parts are added by themselves.
struct WideSums {
  __m512 sums{};
  Floats offsets{};
  Floats factors{};  // of this step

  OF_BLOCKS void begin_step(const EightScales& of_row, int middle,
                            const PartScale* of_x) {
    const EightScales x = scales_and_sums(of_x);
    factors = of_row.first * x.first;
    offsets += (of_row.second + static_cast<float>(middle) * of_row.first) * x.second;
  }

  // `unit`: the activations of a sum.
  template <typename Format>
  OF_BLOCKS void add(const WideWeights<Format::kVectors>& weights, int sum,
                     const uint8_t* unit) {
    using Unit = WideUnit<Format>;
    constexpr bool kOffset = Format::kCentre == Centre::offset;
    __m512i high = _mm512_setzero_si512(), low = _mm512_setzero_si512();
    if constexpr (!kOffset) low = _mm512_loadu_si512(unit + Unit::kCentres);
    for (int v = 0; v < Format::kVectors; ++v) {
      const bool has_sign = Format::kCentre == Centre::sign;
      const __m512i read = weights.vectors[v];
      const __m512i bytes =
          has_sign ? _mm512_xor_si512(read, _mm512_set1_epi8(-128)) : read;
      const uint8_t* const x = unit + 64 * v;
      high = _mm512_dpbusd_epi32(high, bytes, _mm512_loadu_si512(x));
      low = _mm512_dpbusd_epi32(low, _mm512_loadu_si512(x + Unit::kVectorBytes), read);
    }
    const __m512 both =
        _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
    __m512 factor;
    if constexpr (Format::kFactors == Factors::eight) {
      factor =
          _mm512_permutexvar_ps(Format::parts(sum), _mm512_castps256_ps512(factors));
    } else {
      factor = _mm512_mul_ps(weights.factor, _mm512_loadu_ps(unit + Unit::kScales));
    }
    sums = _mm512_fmadd_ps(both, factor, sums);
    if constexpr (kOffset) {
      const __m512 of_x = _mm512_loadu_ps(unit + Unit::kCentres);
      sums = _mm512_fmadd_ps(weights.offset, of_x, sums);
    }
  }

  // The sums of activations are eighths.
  OF_BLOCKS float all() const {
    return _mm512_reduce_add_ps(sums) + 8 * sum_of(offsets);
  }
};

// A row of the weight with rows of activations.
template <typename Format, int kRows>
struct WideProducts {
  OF_BLOCKS WideProducts(const BlockWeight& weight, int64_t n) : row(weight, n) {}

  OF_BLOCKS void begin_step(const PartScale* const* scales) {
    if constexpr (Format::kFactors == Factors::eight) {
      const EightScales of_row = row.scales();
#pragma GCC unroll 4
      for (int m = 0; m < kRows; ++m) {
        products[m].begin_step(of_row, Format::kMiddle, scales[m]);
      }
    }
  }
  OF_BLOCKS void add(int sum, const uint8_t* const* units, int64_t at) {
    const auto weights = row.weights(sum);
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
      products[m].template add<Format>(weights, sum, units[m] + at);
    }
  }
  OF_BLOCKS void write(float* out, int64_t stride) const {
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) out[m * stride] = products[m].all();
  }

  Format row;
  WideSums products[kRows];
};

// The products of the rows n and, if there are two, n + apart, with rows of
// activations.
template <typename Format, int kCount, int kRows>
OF_BLOCKS void multiply_wide_rows(const BlockWeight& weight, int64_t n, int64_t apart,
                                  const BlockActivations& x, int64_t first,
                                  float* out) {
  WideProducts<Format, kRows> one(weight, n), other(weight, n + apart);
  const uint8_t* units[kRows];
  const PartScale* scales[kRows];
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
    units[m] = x.units(first + m);
    scales[m] = x.scales(first + m);
  }
  int64_t at = 0;
  for (int64_t k = 0; k < weight.columns; k += Format::kWeights) {
    one.begin_step(scales);
    if constexpr (kCount == 2) other.begin_step(scales);
#pragma GCC unroll 4
    for (int sum = 0; sum < Format::kSums; ++sum, at += WideUnit<Format>::kBytes) {
      one.add(sum, units, at);
      if constexpr (kCount == 2) other.add(sum, units, at);
    }
    one.row.to_next();
    if constexpr (kCount == 2) other.row.to_next();
    for (int m = 0; m < kRows; ++m) scales[m] += 8;
  }
  float* const to = out + first * weight.rows + n;
  one.write(to, weight.rows);
  if constexpr (kCount == 2) other.write(to + apart, weight.rows);
}

template <typename Format, int kCount>
OF_BLOCKS void multiply_wide_rows(const BlockWeight& weight, int64_t n, int64_t apart,
                                  const BlockActivations& x, float* out) {
  int64_t m = 0;
  for (; m + 4 <= x.rows(); m += 4) {
    multiply_wide_rows<Format, kCount, 4>(weight, n, apart, x, m, out);
  }
  for (; m + 2 <= x.rows(); m += 2) {
    multiply_wide_rows<Format, kCount, 2>(weight, n, apart, x, m, out);
  }
  if (m < x.rows()) {
    multiply_wide_rows<Format, kCount, 1>(weight, n, apart, x, m, out);
  }
}

// What the kernels do with a format.
template <typename Format>
struct WideFormat {
  static bool fits(const BlockWeight& weight) {
    return weight.columns % Format::kWeights == 0;
  }
  static int64_t unit_bytes(const BlockWeight& weight) {
    return weight.columns / (64 * Format::kVectors) * WideUnit<Format>::kBytes;
  }
  INSTRUCTIONS static void write(const BlockWeight& weight, const int16_t* words,
                                 const PartScale* scales, uint8_t* out) {
    const int64_t together = parts_together(weight);
    for (int64_t k = 0; k < weight.columns; k += Format::kWeights) {
      for (int sum = 0; sum < Format::kSums; ++sum) {
        write_unit<Format>(words + k, scales + k / (together * kPart), together, sum,
                           out);
        out += WideUnit<Format>::kBytes;
      }
    }
  }
  INSTRUCTIONS static void multiply(const BlockWeight& weight,
                                    const BlockActivations& x, int64_t begin,
                                    int64_t end, float* out) {
    const int64_t apart = (end - begin) / 2;
    for (int64_t n = begin; n < begin + apart; ++n) {
      multiply_wide_rows<Format, 2>(weight, n, apart, x, out);
    }
    if ((end - begin) % 2 == 1) {
      multiply_wide_rows<Format, 1>(weight, end - 1, 0, x, out);
    }
  }
};

// Calls f with a WideFormat; false if no format fits.
template <typename Format, typename Function>
bool if_fits(const BlockWeight& weight, const Function& f) {
  if (!WideFormat<Format>::fits(weight)) return false;
  f(WideFormat<Format>());
  return true;
}

template <typename Function>
bool with_wide_format(const BlockWeight& weight, const Function& f) {
  switch (weight.format) {
    case BlockFormat::int8_channels:
      return if_fits<WideInt8>(weight, f);
    case BlockFormat::int4_groups:
      return weight.group == 64 && if_fits<WideInt4>(weight, f);
    case BlockFormat::q4_0:
      return if_fits<WideQ4_0>(weight, f);
    case BlockFormat::q4_1:
      return if_fits<WideQ4_1>(weight, f);
    case BlockFormat::q5_0:
      return if_fits<WideQ5_0>(weight, f);
    case BlockFormat::q5_1:
      return if_fits<WideQ5_1>(weight, f);
    case BlockFormat::q8_0:
      return if_fits<WideQ8_0>(weight, f);
    case BlockFormat::q4_k:
      return if_fits<WideQ4_K>(weight, f);
    case BlockFormat::q5_k:
      return if_fits<WideQ5_K>(weight, f);
    case BlockFormat::q6_k:
      return if_fits<WideQ6_K>(weight, f);
  }
  return false;
}

int64_t unit_bytes(const BlockWeight& weight) {
  int64_t bytes = 0;
  with_wide_format(weight, [&](auto format) { bytes = format.unit_bytes(weight); });
  return bytes;
}

void write_units(const BlockWeight& weight, const int16_t* words,
                 const PartScale* scales, uint8_t* out) {
  with_wide_format(weight,
                   [&](auto format) { format.write(weight, words, scales, out); });
}
