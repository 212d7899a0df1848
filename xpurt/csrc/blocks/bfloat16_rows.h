// Rows of weights in bfloat16, part of block_rows.h. As in wide_rows.h, two rows that
// are far apart are read at once.
OF_BLOCKS __m512bh bfloat16_at(const uint16_t* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

OF_BLOCKS __m512bh bfloat16_at(const uint16_t* from, __mmask32 some) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(some, from));
}

template <int kRows>
OF_BLOCKS void multiply_two_rows(const uint16_t* row, const uint16_t* other,
                                 const uint16_t* x, int64_t columns, float* out,
                                 float* other_out, int64_t stride) {
  __m512 sums[kRows] = {}, other_sums[kRows] = {};
  int64_t k = 0;
  for (; k + 32 <= columns; k += 32) {
    __builtin_prefetch(row + k + kAhead / 2);
    __builtin_prefetch(other + k + kAhead / 2);
    const __m512bh weights = bfloat16_at(row + k), others = bfloat16_at(other + k);
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
      const __m512bh values = bfloat16_at(x + m * columns + k);
      sums[m] = _mm512_dpbf16_ps(sums[m], weights, values);
      other_sums[m] = _mm512_dpbf16_ps(other_sums[m], others, values);
    }
  }
  const __mmask32 last = (1U << (columns - k)) - 1;
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
    const __m512bh values = bfloat16_at(x + m * columns + k, last);
    sums[m] = _mm512_dpbf16_ps(sums[m], bfloat16_at(row + k, last), values);
    other_sums[m] =
        _mm512_dpbf16_ps(other_sums[m], bfloat16_at(other + k, last), values);
    out[m * stride] = _mm512_reduce_add_ps(sums[m]);
    other_out[m * stride] = _mm512_reduce_add_ps(other_sums[m]);
  }
}

INSTRUCTIONS void multiply_bfloat16(const Bfloat16Product& of, int64_t begin,
                                    int64_t end, float* out) {
  const int64_t apart = (end - begin) / 2, columns = of.columns, stride = of.results;
  for (int64_t n = begin; n < end - apart; ++n) {
    const int64_t far = std::min(n + apart, end - 1);  // of an odd number the same
    const uint16_t *const row = of.weight + n * columns, *const other =
                                                             of.weight + far * columns;
    int64_t m = 0;
    for (; m + 4 <= of.rows; m += 4) {
      float* const to = out + m * stride;
      multiply_two_rows<4>(row, other, of.x + m * columns, columns, to + n, to + far,
                           stride);
    }
    for (; m < of.rows; ++m) {
      float* const to = out + m * stride;
      multiply_two_rows<1>(row, other, of.x + m * columns, columns, to + n, to + far,
                           stride);
    }
  }
}
