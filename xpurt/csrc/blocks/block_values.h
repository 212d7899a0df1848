// Writes the values of a row of weights, part of block_rows.h.
OF_BLOCKS void write(const Floats& values, float* out) {
  std::memcpy(out, &values, sizeof(values));
}

// Rounded to the nearest, ties to even. No weight is NaN or overflows unless a scale
// is.
OF_BLOCKS void write(const Floats& values, uint16_t* out) {
  using Bits = uint32_t __attribute__((vector_size(32)));
  using Halves = uint16_t __attribute__((vector_size(16)));
  Bits bits;
  std::memcpy(&bits, &values, sizeof(bits));
  const Bits rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const Bits unordered = (values != values) & 0x7FC0;
  const Halves halves = __builtin_convertvector(
      (rounded & ~Bits(values != values)) | Bits(unordered), Halves);
  std::memcpy(out, &halves, sizeof(halves));
}

template <typename Out>
OF_BLOCKS void write_words(const Words& words, float factor, float offset, Out* out) {
  for (int at = 0; at < 2; ++at) {
    EightWords half;
    std::memcpy(&half, reinterpret_cast<const int16_t*>(&words) + 8 * at, sizeof(half));
    write(factor * __builtin_convertvector(half, Floats) + offset, out + 8 * at);
  }
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

template <typename Out>
OF_BLOCKS void write_value(float value, Out* out) {
  Out eight[8];
  write(Floats{value}, eight);
  *out = eight[0];
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
