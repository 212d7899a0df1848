// Groups of 64 weights in 4 bits by AVX-512, part of block_rows.h: about half the
// instructions of RowOfInt4By64. The sums begin with what makes words of 0 to 15 those
// of -8 to 7, so no word is subtracted from.
INSTRUCTIONS void write_middles(const int16_t* words, int32_t* middles) {
  const __m512i eights = _mm512_set1_epi16(-8);
  __m512i sums = _mm512_madd_epi16(eights, _mm512_loadu_si512(words));
  sums = _mm512_dpwssd_epi32(sums, eights, _mm512_loadu_si512(words + kPart));
  _mm512_storeu_si512(middles, sums);
}

template <int kRows>
OF_BLOCKS void multiply_wide_row(const BlockWeight& weight, int64_t n,
                                 const BlockActivations& x, int64_t first, float* out,
                                 int64_t stride) {
  const int64_t groups = weight.columns / 64;
  const uint8_t* values = weight.row(n);
  const float* const scale = weight.scale + n * groups;
  const float* const minimum = weight.minimum + n * groups;
  __m512 sums[kRows];
  Floats offsets[kRows];
  for (int m = 0; m < kRows; ++m) {
    sums[m] = _mm512_setzero_ps();
    offsets[m] = Floats{};
  }
  for (int64_t g = 0; g < groups; g += 8) {
    Floats scales, minima;
    std::memcpy(&scales, scale + g, sizeof(scales));
    std::memcpy(&minima, minimum + g, sizeof(minima));
    float factors[kRows][8];
    for (int m = 0; m < kRows; ++m) {
      const EightScales of_x = scales_and_sums(x.scales(first + m) + g);
      const Floats both = scales * of_x.first;
      std::memcpy(factors[m], &both, sizeof(both));
      offsets[m] += (minima + 8 * scales) * of_x.second;
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i, values += 32) {
      __builtin_prefetch(values + kAhead);
      const __m512i read = _mm512_cvtepu8_epi16(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)));
      const __m512i low = _mm512_and_si512(read, _mm512_set1_epi16(15));
      const __m512i high = _mm512_srli_epi16(read, 4);
#pragma GCC unroll 4
      for (int m = 0; m < kRows; ++m) {
        const int16_t* const words = x.words(first + m) + (g + i) * 64;
        __m512i both = _mm512_loadu_si512(x.middles(first + m) + (g + i) * 16);
        both = _mm512_dpwssd_epi32(both, low, _mm512_loadu_si512(words));
        both = _mm512_dpwssd_epi32(both, high, _mm512_loadu_si512(words + kPart));
        sums[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(both),
                                  _mm512_set1_ps(factors[m][i]), sums[m]);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    // The sums of activations are eighths.
    out[m * stride] = _mm512_reduce_add_ps(sums[m]) + 8 * sum_of(offsets[m]);
  }
}

INSTRUCTIONS void multiply_wide(const BlockWeight& weight, const BlockActivations& x,
                                int64_t begin, int64_t end, float* out) {
  for (int64_t n = begin; n < end; ++n) {
    int64_t m = 0;
    float* const to = out + n;
    const int64_t stride = weight.rows;
    for (; m + 4 <= x.rows(); m += 4) {
      multiply_wide_row<4>(weight, n, x, m, to + m * stride, stride);
    }
    for (; m + 2 <= x.rows(); m += 2) {
      multiply_wide_row<2>(weight, n, x, m, to + m * stride, stride);
    }
    if (m < x.rows()) multiply_wide_row<1>(weight, n, x, m, to + m * stride, stride);
  }
}
