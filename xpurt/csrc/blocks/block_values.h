// Writes the values of a row of weights, part of block_rows.h.
OF_BLOCKS Floats floats_of_half(const Words& words, int at) {
  EightWords half;
  std::memcpy(&half, reinterpret_cast<const int16_t*>(&words) + 8 * at, sizeof(half));
  return floats_of(half);
}

OF_BLOCKS void write_words(const Words& words, float factor, float offset, float* out) {
  for (int at = 0; at < 2; ++at) {
    const Floats values = factor * floats_of_half(words, at) + offset;
    std::memcpy(out + 8 * at, &values, sizeof(values));
  }
}

// Rounded to the nearest, ties to even.
OF_BLOCKS void write_words(const Words& words, float factor, float offset,
                           uint16_t* out) {
#ifdef WITH_AVX512
  const __m512i integers = _mm512_cvtepi16_epi32(reinterpret_cast<__m256i>(words));
  const __m512 values = _mm512_fmadd_ps(_mm512_cvtepi32_ps(integers),
                                        _mm512_set1_ps(factor), _mm512_set1_ps(offset));
  const __m256bh rounded = _mm512_cvtneps_pbh(values);
  std::memcpy(out, &rounded, sizeof(rounded));
#else
  float values[16];
  write_words(words, factor, offset, values);
  for (int i = 0; i < 16; ++i) {
    out[i] = c10::BFloat16(values[i]).x;
  }
#endif
}

template <typename Row, typename Out>
INSTRUCTIONS void write_row(const BlockWeight& weight, int64_t n, Out* out) {
  Row row(weight, n);
  for (int64_t k = 0; k < weight.columns; row.to_next()) {
    const auto scales = row.scales();
#pragma GCC unroll 8
    for (int i = 0; i < Row::kParts; ++i, k += kPart) {
      float first, second;
      if constexpr (Row::kParts == 1) {
        first = scales[0], second = scales[1];
      } else {
        first = scales.first[i], second = scales.second[i];
      }
      const bool halves = Row::kScales == Scales::halves;
      const float offset = Row::kScales == Scales::offset ? second : 0;
      const Part part = row.part(i);
      Out last[kPart];  // of int8_channels
      Out* const to = k + kPart <= weight.columns ? out + k : last;
      write_words(part.low, first, offset, to);
      write_words(part.high, halves ? second : first, offset, to + kPart / 2);
      if (to == last) std::copy_n(last, weight.columns - k, out + k);
    }
  }
}

OF_BLOCKS void write_value(float value, float* out) {
  *out = value;
}
OF_BLOCKS void write_value(float value, uint16_t* out) {
  *out = c10::BFloat16(value).x;
}

// Groups of any multiple of 16. Byte j has the elements j and j + half.
template <typename Out>
INSTRUCTIONS void write_int4_row(const BlockWeight& weight, int64_t n, Out* out) {
  const int64_t groups = weight.columns / weight.group, half = weight.group / 2;
  const uint8_t* bytes = weight.row(n);
  for (int64_t g = 0; g < groups; ++g, bytes += half, out += weight.group) {
    const float scale = weight.scale[n * groups + g];
    const float minimum = weight.minimum[n * groups + g];
    int64_t k = 0;
    for (; k + 16 <= half; k += 16) {
      const Words read = words_at(bytes + k);
      write_words(read & 15, scale, minimum, out + k);
      write_words(read >> 4, scale, minimum, out + half + k);
    }
    for (; k < half; ++k) {
      write_value(scale * static_cast<float>(bytes[k] & 15) + minimum, out + k);
      write_value(scale * static_cast<float>(bytes[k] >> 4) + minimum, out + half + k);
    }
  }
}
