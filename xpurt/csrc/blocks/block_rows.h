// Rows of weights in blocks. Each file that includes it defines the NAMESPACE, the
// INSTRUCTIONS that its functions are compiled for, whatever the rest is compiled for,
// WITH_AVX2_AND_F16C and WITH_AVX512 (with VNNI and bfloat16) if these have them, and
// the KERNELS.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "blocks/block_kernels.h"

#define OF_BLOCKS INSTRUCTIONS __attribute__((always_inline)) inline

namespace xpurt {
namespace NAMESPACE {

#include "blocks/block_parts.h"

#include "blocks/activation_words.h"

// Bytes: the processor itself looks no further than the end of a page. Of 20 MB in
// memory, 4 bits took 1.64 ms for 2.36.
constexpr int64_t kAhead = 2048;

// A row of blocks one after the other.
template <typename Format>
struct RowOfBlocks {
  static constexpr int kParts = Format::kParts;
  static constexpr int kTogether = 1;
  static constexpr Scales kScales = Format::kScales;
  OF_BLOCKS RowOfBlocks(const BlockWeight& weight, int64_t n)
      : block(weight.row(n)), bytes(block_size(weight.format).bytes) {}

  OF_BLOCKS Part part(int at) const { return Format::part(block, at); }
  OF_BLOCKS auto scales() const { return Format::scales(block); }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(block + kAhead);
    if constexpr (kParts > 1) {
      __builtin_prefetch(block + kAhead + 64);
      __builtin_prefetch(block + kAhead + 128);
    }
    block += bytes;
  }

  const uint8_t* block;
  int64_t bytes;
};

// Of any number of columns. Each part is a block.
struct RowOfInt8 {
  static constexpr int kParts = 1;
  static constexpr int kTogether = 1;
  static constexpr Scales kScales = Scales::factor;
  OF_BLOCKS RowOfInt8(const BlockWeight& weight, int64_t n)
      : values(weight.row(n)), left(weight.columns), scale(weight.scale[n]) {}

  OF_BLOCKS Part part(int) const {
    if (left >= kPart) {
      return {signed_words_at(values), signed_words_at(values + 16)};
    }
    uint8_t last[kPart] = {};
    std::memcpy(last, values, left);
    return {signed_words_at(last), signed_words_at(last + 16)};
  }
  OF_BLOCKS Four scales() const { return Four{scale}; }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(values + kAhead);
    values += kPart;
    left -= kPart;
  }

  const uint8_t* values;
  int64_t left;
  float scale;
};

// Of groups of whole blocks of kTogether parts.
template <int kTogether_>
struct RowOfInt4 {
  static constexpr int kParts = 1;
  static constexpr int kTogether = kTogether_;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS RowOfInt4(const BlockWeight& weight, int64_t n)
      : values(weight.row(n)),
        blocks(weight.group / (kTogether * kPart)),
        left(blocks),
        scale(weight.scale + n * (weight.columns / weight.group)),
        minimum(weight.minimum + n * (weight.columns / weight.group)) {}

  OF_BLOCKS Part part(int at) const { return part_of_nibbles(values + kPart / 2 * at); }
  OF_BLOCKS Four scales() const { return Four{*scale, *minimum}; }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(values + kAhead);
    values += kTogether * kPart / 2;
    if (--left > 0) return;
    left = blocks;
    ++scale;
    ++minimum;
  }

  const uint8_t* values;
  int64_t blocks;  // of a group
  int64_t left;    // of this group
  const float* scale;
  const float* minimum;
};

// Of groups of 64, eight of them in a block.
struct RowOfInt4By64 {
  static constexpr int kParts = 8;
  static constexpr int kTogether = 2;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS RowOfInt4By64(const BlockWeight& weight, int64_t n)
      : values(weight.row(n)),
        scale(weight.scale + n * (weight.columns / 64)),
        minimum(weight.minimum + n * (weight.columns / 64)) {}

  OF_BLOCKS Part part(int at) const { return part_of_nibbles(values + kPart / 2 * at); }
  OF_BLOCKS EightScales scales() const {
    EightScales read;
    std::memcpy(&read.first, scale, sizeof(read.first));
    std::memcpy(&read.second, minimum, sizeof(read.second));
    return read;
  }
  OF_BLOCKS void to_next() {
    for (int at = 0; at < 8 * 32; at += 64) __builtin_prefetch(values + kAhead + at);
    values += 8 * 32;
    scale += 8;
    minimum += 8;
  }

  const uint8_t* values;
  const float* scale;
  const float* minimum;
};

// Integers of 32 bits: a[2 i] b[2 i] + a[2 i + 1] b[2 i + 1].
OF_BLOCKS Integers sums_of_pairs(const Words& a, const int16_t* b) {
  Words other;
  std::memcpy(&other, b, sizeof(other));
#ifdef WITH_AVX2_AND_F16C
  return reinterpret_cast<Integers>(_mm256_madd_epi16(
      reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(other)));
#else
  Integers sums;
  for (int i = 0; i < 8; ++i) {
    sums[i] =
        int32_t{a[2 * i]} * other[2 * i] + int32_t{a[2 * i + 1]} * other[2 * i + 1];
  }
  return sums;
#endif
}

OF_BLOCKS Floats everywhere(const Floats& values, int lane) {
  return __builtin_shuffle(values, Integers{} + lane);
}

OF_BLOCKS Floats everywhere(const Four& values, int lane) {
  const float value = values[lane];
  return Floats{value, value, value, value, value, value, value, value};
}

// Read at once: a vector that is written in pieces is slow to read.
OF_BLOCKS Four scale_and_sum(const PartScale* part) {
#ifdef WITH_AVX2_AND_F16C
  return _mm_castpd_ps(_mm_load_sd(reinterpret_cast<const double*>(part)));
#else
  return Four{part->scale, part->sum};
#endif
}

OF_BLOCKS EightScales scales_and_sums(const PartScale* parts) {
  Floats first, last;
  std::memcpy(&first, parts, sizeof(first));
  std::memcpy(&last, parts + 4, sizeof(last));
  return {__builtin_shuffle(first, last, Integers{0, 2, 4, 6, 8, 10, 12, 14}),
          __builtin_shuffle(first, last, Integers{1, 3, 5, 7, 9, 11, 13, 15})};
}

// The integers of a block's parts with a scale of their own, at `at`, times
// activations.
struct Sums {
  Integers low;
  Integers high;
};

template <typename Row>
OF_BLOCKS Sums sums_of_parts(const Row& row, int at, const int16_t* x) {
  const Part part = row.part(at);
  constexpr int kStep = Row::kTogether * kPart / 2;
  Sums sums{sums_of_pairs(part.low, x), sums_of_pairs(part.high, x + kStep)};
  if constexpr (Row::kTogether == 2) {
    const Part next = row.part(at + 1);
    sums.low += sums_of_pairs(next.low, x + kPart / 2);
    sums.high += sums_of_pairs(next.high, x + kStep + kPart / 2);
  }
  return sums;
}

// Times the scales of both. An offset is added to each lane, an eighth of it, so that
// it cancels there what it cancels in all.
template <Scales kScales>
OF_BLOCKS void add_part(const Sums& parts, const Floats& first, const Floats& second,
                        Floats& sums) {
  if constexpr (kScales == Scales::halves) {
    sums += first * __builtin_convertvector(parts.low, Floats);
    sums += second * __builtin_convertvector(parts.high, Floats);
  } else {
    const Floats both = __builtin_convertvector(parts.low + parts.high, Floats);
    if constexpr (kScales == Scales::offset) {
      sums += first * both + second;
    } else {
      sums += first * both;
    }
  }
}

// By halves: eight additions one after the other would take a fifth of a short row.
OF_BLOCKS float sum_of(const Floats& values) {
  Four halves[2];
  std::memcpy(halves, &values, sizeof(halves));
  const Four four = halves[0] + halves[1];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// The products of a row of the weight and kRows rows of activations.
template <typename Row, int kRows>
OF_BLOCKS void multiply_row(Row row, const BlockActivations& x, int64_t first,
                            float* out, int64_t stride) {
  Floats sums[kRows] = {};
  const int16_t* words[kRows];
  const PartScale* scales[kRows];
  for (int m = 0; m < kRows; ++m) {
    words[m] = x.words(first + m);
    scales[m] = x.scales(first + m);
  }
  constexpr int kWords = Row::kTogether * kPart;
  int64_t at = 0;  // words with scales of their own
  for (int64_t p = 0; p < x.parts(); p += Row::kParts * Row::kTogether, row.to_next()) {
    if constexpr (Row::kParts == 1) {
      const Four of_row = row.scales();
#pragma GCC unroll 4
      for (int m = 0; m < kRows; ++m) {
        const Four both = of_row * scale_and_sum(scales[m] + p / Row::kTogether);
        add_part<Row::kScales>(sums_of_parts(row, 0, words[m] + p * kPart),
                               everywhere(both, 0), everywhere(both, 1), sums[m]);
      }
    } else {
      const EightScales of_row = row.scales();
      EightScales both[kRows];
      for (int m = 0; m < kRows; ++m) {
        const EightScales of_x = scales_and_sums(scales[m] + at);
        both[m].first = of_row.first * of_x.first;
        const bool halves = Row::kScales == Scales::halves;
        both[m].second = of_row.second * (halves ? of_x.first : of_x.second);
      }
#pragma GCC unroll 8
      for (int i = 0; i < Row::kParts; ++i) {
#pragma GCC unroll 4
        for (int m = 0; m < kRows; ++m) {
          const int16_t* const other = words[m] + p * kPart + i * kWords;
          add_part<Row::kScales>(sums_of_parts(row, i * Row::kTogether, other),
                                 everywhere(both[m].first, i),
                                 everywhere(both[m].second, i), sums[m]);
        }
      }
      at += Row::kParts;
    }
  }
  for (int m = 0; m < kRows; ++m) {
    out[m * stride] = sum_of(sums[m]);
  }
}

template <typename Row>
INSTRUCTIONS void multiply_rows(const BlockWeight& weight, const BlockActivations& x,
                                int64_t begin, int64_t end, float* out) {
  const int64_t rows = x.rows();
  for (int64_t n = begin; n < end; ++n) {
    const Row row(weight, n);
    int64_t m = 0;
    for (; m + 4 <= rows; m += 4) {
      multiply_row<Row, 4>(row, x, m, out + m * weight.rows + n, weight.rows);
    }
    for (; m + 2 <= rows; m += 2) {
      multiply_row<Row, 2>(row, x, m, out + m * weight.rows + n, weight.rows);
    }
    if (m < rows) {
      multiply_row<Row, 1>(row, x, m, out + m * weight.rows + n, weight.rows);
    }
  }
}

#include "blocks/block_values.h"
#ifdef WITH_AVX512
#include "blocks/bfloat16_rows.h"
#include "blocks/wide_rows.h"
#endif

// Calls f with a null pointer to the type of the rows.
template <typename Function>
void with_row_type(BlockFormat format, const Function& f) {
  switch (format) {
    case BlockFormat::int8_channels:
      return f(static_cast<RowOfInt8*>(nullptr));
    case BlockFormat::int4_groups:
      return f(static_cast<RowOfInt4<1>*>(nullptr));
    case BlockFormat::q4_0:
      return f(static_cast<RowOfBlocks<Q4_0>*>(nullptr));
    case BlockFormat::q4_1:
      return f(static_cast<RowOfBlocks<Q4_1>*>(nullptr));
    case BlockFormat::q5_0:
      return f(static_cast<RowOfBlocks<Q5_0>*>(nullptr));
    case BlockFormat::q5_1:
      return f(static_cast<RowOfBlocks<Q5_1>*>(nullptr));
    case BlockFormat::q8_0:
      return f(static_cast<RowOfBlocks<Q8_0>*>(nullptr));
    case BlockFormat::q4_k:
      return f(static_cast<RowOfBlocks<Q4_K>*>(nullptr));
    case BlockFormat::q5_k:
      return f(static_cast<RowOfBlocks<Q5_K>*>(nullptr));
    case BlockFormat::q6_k:
      return f(static_cast<RowOfBlocks<Q6_K>*>(nullptr));
  }
}

void multiply(const BlockWeight& weight, const BlockActivations& x, int64_t begin,
              int64_t end, float* out) {
#ifdef WITH_AVX512
  const auto by_format = [&](auto f) { f.multiply(weight, x, begin, end, out); };
  if (with_wide_format(weight, by_format)) return;
#endif
  if (has_eight_groups(weight)) {
    return multiply_rows<RowOfInt4By64>(weight, x, begin, end, out);
  }
  if (parts_together(weight) == 2) {
    return multiply_rows<RowOfInt4<2>>(weight, x, begin, end, out);
  }
  with_row_type(weight.format, [&](auto* row) {
    using Row = std::remove_pointer_t<decltype(row)>;
    multiply_rows<Row>(weight, x, begin, end, out);
  });
}

template <typename Out>
void write_values(const BlockWeight& weight, int64_t n, Out* out) {
  if (weight.format == BlockFormat::int4_groups) return write_int4_row(weight, n, out);
  with_row_type(weight.format, [&](auto* row) {
    write_row<std::remove_pointer_t<decltype(row)>>(weight, n, out);
  });
}

}  // namespace NAMESPACE

const BlockKernels KERNELS{.to_words = &NAMESPACE::to_words,
#ifdef WITH_AVX512
                           .unit_bytes = &NAMESPACE::unit_bytes,
                           .write_units = &NAMESPACE::write_units,
                           .multiply_bfloat16 = &NAMESPACE::multiply_bfloat16,
#endif
                           .multiply = &NAMESPACE::multiply,
                           .to_float = &NAMESPACE::write_values<float>,
                           .to_bfloat16 = &NAMESPACE::write_values<uint16_t>};

}  // namespace xpurt

#undef OF_BLOCKS
#undef INSTRUCTIONS
#undef NAMESPACE
#undef KERNELS
#undef WITH_AVX2_AND_F16C
#undef WITH_AVX512
