// Reads blocks of weights in parts of 32, part of block_rows.h. A part has its integers
// as words, in the order of activations. Its scales are
//   Scales::factor: a factor,
//   Scales::offset: a factor, and the offset that each weight has,
//   Scales::halves: the factors of the low and the high 16 words.
enum class Scales { factor, offset, halves };

using Bytes = uint8_t __attribute__((vector_size(16)));
using SignedBytes = int8_t __attribute__((vector_size(16)));
using Words = int16_t __attribute__((vector_size(32)));
using Integers = int32_t __attribute__((vector_size(32)));
using Four = float __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(32)));
using EightWords = int16_t __attribute__((vector_size(16)));

struct Part {
  Words low;
  Words high;
};

// Of eight parts.
struct EightScales {
  Floats first;
  Floats second;
};

OF_BLOCKS Words words_at(const uint8_t* bytes) {
  Bytes read;
  std::memcpy(&read, bytes, sizeof(read));
#ifdef WITH_AVX2_AND_F16C
  return reinterpret_cast<Words>(_mm256_cvtepu8_epi16(reinterpret_cast<__m128i>(read)));
#else
  return __builtin_convertvector(read, Words);
#endif
}

OF_BLOCKS Words signed_words_at(const uint8_t* bytes) {
  SignedBytes read;
  std::memcpy(&read, bytes, sizeof(read));
#ifdef WITH_AVX2_AND_F16C
  return reinterpret_cast<Words>(_mm256_cvtepi8_epi16(reinterpret_cast<__m128i>(read)));
#else
  return __builtin_convertvector(read, Words);
#endif
}

OF_BLOCKS Part part_at(const uint8_t* bytes, int shift) {
  return {(words_at(bytes) >> shift) & 15, (words_at(bytes + 16) >> shift) & 15};
}

OF_BLOCKS Part part_of_nibbles(const uint8_t* bytes) {
  const Words read = words_at(bytes);
  return {read & 15, read >> 4};
}

OF_BLOCKS float half_of(uint32_t bits) {
  return c10::Half(static_cast<uint16_t>(bits), c10::Half::from_bits());
}

// The float16 values of four bytes, and zeros.
OF_BLOCKS Four two_floats_at(const uint8_t* bytes) {
  int32_t read;
  std::memcpy(&read, bytes, sizeof(read));
#ifdef WITH_AVX2_AND_F16C
  return _mm_cvtph_ps(_mm_cvtsi32_si128(read));
#else
  const auto both = static_cast<uint32_t>(read);
  return Four{half_of(both & 0xFFFF), half_of(both >> 16)};
#endif
}

OF_BLOCKS float float_at(const uint8_t* bytes) {
  uint16_t read;
  std::memcpy(&read, bytes, sizeof(read));
#ifdef WITH_AVX2_AND_F16C
  return _cvtsh_ss(read);
#else
  return half_of(read);
#endif
}

// The float16 value of two bytes.
OF_BLOCKS Four everywhere(const uint8_t* bytes) {
#ifdef WITH_AVX2_AND_F16C
  int16_t read;
  std::memcpy(&read, bytes, sizeof(read));
  return _mm_cvtph_ps(_mm_set1_epi16(read));
#else
  const float value = float_at(bytes);
  return Four{value, value, value, value};
#endif
}

// `bit` in the words whose bits of two bytes are set.
OF_BLOCKS Words bits_at(const uint8_t* bytes, int16_t bit) {
  constexpr Words kBits{1,   2,   4,    8,    16,   32,   64,    128,
                        256, 512, 1024, 2048, 4096, 8192, 16384, int16_t(-32768)};
  int16_t read;
  std::memcpy(&read, bytes, sizeof(read));
  return (((Words{} + read) & kBits) != 0) & bit;
}

OF_BLOCKS Part with_fifth_bits(const Part& part, const uint8_t* bits) {
  return {part.low | bits_at(bits, 16), part.high | bits_at(bits + 2, 16)};
}

struct Q4_0 {
  static constexpr int kParts = 1;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int) {
    return part_of_nibbles(block + 2);
  }
  OF_BLOCKS static Four scales(const uint8_t* block) {
    return everywhere(block) * Four{1, -8};
  }
};

struct Q4_1 {
  static constexpr int kParts = 1;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int) {
    return part_of_nibbles(block + 4);
  }
  OF_BLOCKS static Four scales(const uint8_t* block) { return two_floats_at(block); }
};

struct Q5_0 {
  static constexpr int kParts = 1;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int) {
    return with_fifth_bits(part_of_nibbles(block + 6), block + 2);
  }
  OF_BLOCKS static Four scales(const uint8_t* block) {
    return everywhere(block) * Four{1, -16};
  }
};

struct Q5_1 {
  static constexpr int kParts = 1;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int) {
    return with_fifth_bits(part_of_nibbles(block + 8), block + 4);
  }
  OF_BLOCKS static Four scales(const uint8_t* block) { return two_floats_at(block); }
};

struct Q8_0 {
  static constexpr int kParts = 1;
  static constexpr Scales kScales = Scales::factor;
  OF_BLOCKS static Part part(const uint8_t* block, int) {
    return {signed_words_at(block + 2), signed_words_at(block + 18)};
  }
  OF_BLOCKS static Four scales(const uint8_t* block) { return everywhere(block); }
};

OF_BLOCKS Floats floats_of(uint64_t bytes) {
#ifdef WITH_AVX2_AND_F16C
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
#else
  using Eight = uint8_t __attribute__((vector_size(8)));
  Eight each;
  std::memcpy(&each, &bytes, sizeof(each));
  return __builtin_convertvector(__builtin_convertvector(each, Integers), Floats);
#endif
}

// Of Q4_K and Q5_K: six bits for the factor and the offset of each part, in twelve
// bytes. The first four parts have bytes of their own, the others the high bits of
// these.
OF_BLOCKS EightScales scales_of_k(const uint8_t* block) {
  uint32_t first, second, third;
  std::memcpy(&first, block + 4, sizeof(first));
  std::memcpy(&second, block + 8, sizeof(second));
  std::memcpy(&third, block + 12, sizeof(third));
  const auto eight = [](uint32_t low, uint32_t high, uint32_t four) {
    const uint32_t later = (four & 0x0F0F0F0F) | (high >> 2 & 0x30303030);
    return static_cast<uint64_t>(later) << 32 | (low & 0x3F3F3F3F);
  };
  const Four both = two_floats_at(block);
  return {both[0] * floats_of(eight(first, first, third)),
          -both[1] * floats_of(eight(second, second, third >> 4))};
}

struct Q4_K {
  static constexpr int kParts = 8;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int part) {
    return part_at(block + 16 + 32 * (part / 2), part % 2 * 4);
  }
  OF_BLOCKS static EightScales scales(const uint8_t* block) {
    return scales_of_k(block);
  }
};

struct Q5_K {
  static constexpr int kParts = 8;
  static constexpr Scales kScales = Scales::offset;
  OF_BLOCKS static Part part(const uint8_t* block, int part) {
    const Part four = part_at(block + 48 + 32 * (part / 2), part % 2 * 4);
    const auto fifth = static_cast<int16_t>(1 << part);
    return {four.low + (((words_at(block + 16) & fifth) != 0) & 16),
            four.high + (((words_at(block + 32) & fifth) != 0) & 16)};
  }
  OF_BLOCKS static EightScales scales(const uint8_t* block) {
    return scales_of_k(block);
  }
};

// The two bits at 2 * quarter, as the fifth and the sixth.
OF_BLOCKS Words high_bits(const uint8_t* bytes, int quarter) {
  const Words read = words_at(bytes);
  return (quarter < 2 ? read << (4 - 2 * quarter) : read >> (2 * quarter - 4)) & 48;
}

OF_BLOCKS Floats floats_of(const EightWords& words) {
  return __builtin_convertvector(__builtin_convertvector(words, Integers), Floats);
}

struct Q6_K {
  static constexpr int kParts = 8;
  static constexpr Scales kScales = Scales::halves;
  OF_BLOCKS static Part part(const uint8_t* block, int part) {
    const int half = part / 4, quarter = part % 4;
    const Part four = part_at(block + 64 * half + 32 * (quarter % 2), quarter / 2 * 4);
    const uint8_t* const two = block + 128 + 32 * half;
    return {(four.low | high_bits(two, quarter)) - 32,
            (four.high | high_bits(two + 16, quarter)) - 32};
  }
  OF_BLOCKS static EightScales scales(const uint8_t* block) {
    EightWords pairs;  // of signed bytes
    std::memcpy(&pairs, block + 192, sizeof(pairs));
    const float factor = float_at(block + 208);
    return {factor * floats_of(pairs << 8 >> 8), factor * floats_of(pairs >> 8)};
  }
};
