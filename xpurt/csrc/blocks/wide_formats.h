// Reads blocks of weights as vectors of 64 bytes without a sign, part of wide_rows.h.
//
// A step of a row is kWeights weights, in kSums sums with scales of their own. A sum is
// kVectors vectors, of which it adds each four bytes times activations to one of 16
// integers. `piece` is where the 16 activations of a vector's quarter are in the step.
// What a byte is more than the integer that is multiplied by a factor is in
//   Centre::middle: kMiddle,
//   Centre::sign: 0: the bytes have a sign,
//   Centre::offset: 0: each sum has an offset besides.
enum class Centre { middle, sign, offset };

// Where the factors of the sums are: in the weights of each, or for a step of 8 parts
// in `scales` of the row, with offsets. `parts` are then those of the halves of a sum.
enum class Factors { each, eight };

template <int kVectors>
struct WideWeights {
  __m512i vectors[kVectors];
  __m512 factor{};
  __m512 offset{};
};

OF_BLOCKS __m512i low_nibbles(const __m512i& bytes) {
  return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}

OF_BLOCKS __m512i high_nibbles(const __m512i& bytes) {
  return low_nibbles(_mm512_srli_epi16(bytes, 4));
}

// Four times `first`, four times `second` and so on.
OF_BLOCKS __m512i in_quarters(int first, int second, int third, int fourth) {
  return _mm512_set_epi32(fourth, fourth, fourth, fourth, third, third, third, third,
                          second, second, second, second, first, first, first, first);
}

OF_BLOCKS __m512i in_halves(int first, int second) {
  return in_quarters(first, first, second, second);
}

OF_BLOCKS __m128i sixteen_at(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

OF_BLOCKS __m256i thirty_two_at(const uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

OF_BLOCKS __m512i twice(const uint8_t* bytes) {
  return _mm512_broadcast_i64x4(thirty_two_at(bytes));
}

// The float16 values that are the words `which` of 64 bytes.
OF_BLOCKS __m512 halves_among(const __m512i& words, const __m512i& which) {
  return _mm512_cvtph_ps(
      _mm512_castsi512_si256(_mm512_permutexvar_epi16(which, words)));
}

// 16 words as the low half of the words that a permutation takes.
OF_BLOCKS __m512i words_in_quarters(int first, int second, int third, int fourth) {
  return _mm512_castsi256_si512(
      _mm512_cvtepi32_epi16(in_quarters(first, second, third, fourth)));
}

// Four blocks of kBytes, whose nibbles begin at kNibbles. In a block the low nibbles
// are the first 16 weights.
template <int kBytes, int kNibbles>
struct FourBlocks {
  static constexpr Factors kFactors = Factors::each;
  static constexpr int kWeights = 128;
  static constexpr int kSums = 1;
  static constexpr int kVectors = 2;
  static constexpr int piece(int, int vector, int quarter) {
    return 32 * quarter + 16 * vector;
  }
  OF_BLOCKS FourBlocks(const BlockWeight& weight, int64_t n) : blocks(weight.row(n)) {}

  // Of the first three blocks together, and of the last one.
  OF_BLOCKS __m512i nibbles() const {
    constexpr int kBlock = kBytes / 2;
    alignas(64) constexpr auto kWords = [] {
      std::array<int16_t, 32> words{};
      for (int i = 0; i < 24; ++i) words[i] = i / 8 * kBlock + i % 8;
      return words;
    }();
    const __m512i three = _mm512_permutexvar_epi16(
        _mm512_load_si512(kWords.data()), _mm512_loadu_si512(blocks + kNibbles));
    return _mm512_mask_broadcast_i32x4(three, 0xF000,
                                       sixteen_at(blocks + 3 * kBytes + kNibbles));
  }
  // The float16 values at the beginnings of the blocks, or 2 bytes later.
  OF_BLOCKS __m512 halves(int later) const {
    constexpr int kBlock = kBytes / 2;
    const __m512i which = words_in_quarters(later, kBlock + later, 2 * kBlock + later,
                                            3 * kBlock + later);
    if constexpr (3 * kBytes + 4 <= 64) {
      return halves_among(_mm512_loadu_si512(blocks), which);
    } else {
      const __m256i three = _mm512_castsi512_si256(
          _mm512_permutexvar_epi16(which, _mm512_loadu_si512(blocks)));
      int16_t last;
      std::memcpy(&last, blocks + 3 * kBytes + 2 * later, sizeof(last));
      return _mm512_cvtph_ps(_mm256_mask_set1_epi16(three, 0xF000, last));
    }
  }
  // The bits of `bytes` bytes later than a block's beginning, for 16 weights of each.
  OF_BLOCKS __mmask64 bits(int bytes) const {
    uint64_t all = 0;
    for (int block = 0; block < 4; ++block) {
      uint16_t read;
      std::memcpy(&read, blocks + block * kBytes + bytes, sizeof(read));
      all |= static_cast<uint64_t>(read) << (16 * block);
    }
    return all;
  }
  OF_BLOCKS WideWeights<2> four_bits() const {
    const __m512i read = nibbles();
    return {{low_nibbles(read), high_nibbles(read)}, halves(0)};
  }
  OF_BLOCKS WideWeights<2> five_bits(int fifth) const {
    WideWeights<2> read = four_bits();
    for (int i = 0; i < 2; ++i) {
      read.vectors[i] = _mm512_mask_add_epi8(read.vectors[i], bits(fifth + 2 * i),
                                             read.vectors[i], _mm512_set1_epi8(16));
    }
    return read;
  }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(blocks + kAhead);
    __builtin_prefetch(blocks + kAhead + 64);
    blocks += 4 * kBytes;
  }

  const uint8_t* blocks;
};

struct WideQ4_0 : FourBlocks<18, 2> {
  static constexpr Centre kCentre = Centre::middle;
  static constexpr int kMiddle = 8;
  OF_BLOCKS WideQ4_0(const BlockWeight& weight, int64_t n) : FourBlocks(weight, n) {}
  OF_BLOCKS WideWeights<2> weights(int) const { return four_bits(); }
};

struct WideQ4_1 : FourBlocks<20, 4> {
  static constexpr Centre kCentre = Centre::offset;
  OF_BLOCKS WideQ4_1(const BlockWeight& weight, int64_t n) : FourBlocks(weight, n) {}
  OF_BLOCKS WideWeights<2> weights(int) const {
    WideWeights<2> read = four_bits();
    read.offset = halves(1);
    return read;
  }
};

struct WideQ5_0 : FourBlocks<22, 6> {
  static constexpr Centre kCentre = Centre::middle;
  static constexpr int kMiddle = 16;
  OF_BLOCKS WideQ5_0(const BlockWeight& weight, int64_t n) : FourBlocks(weight, n) {}
  OF_BLOCKS WideWeights<2> weights(int) const { return five_bits(2); }
};

struct WideQ5_1 : FourBlocks<24, 8> {
  static constexpr Centre kCentre = Centre::offset;
  OF_BLOCKS WideQ5_1(const BlockWeight& weight, int64_t n) : FourBlocks(weight, n) {}
  OF_BLOCKS WideWeights<2> weights(int) const {
    WideWeights<2> read = five_bits(4);
    read.offset = halves(1);
    return read;
  }
};

struct InOrder {
  static constexpr Factors kFactors = Factors::each;
  static constexpr int kVectors = 1;
  static constexpr int piece(int sum, int, int quarter) {
    return 64 * sum + 16 * quarter;
  }
};

struct WideQ8_0 : InOrder {
  static constexpr int kWeights = 64;
  static constexpr int kSums = 1;
  static constexpr Centre kCentre = Centre::sign;
  OF_BLOCKS WideQ8_0(const BlockWeight& weight, int64_t n) : blocks(weight.row(n)) {}

  OF_BLOCKS WideWeights<1> weights(int) const {
    const __m512i first = _mm512_castsi256_si512(thirty_two_at(blocks + 2));
    return {{_mm512_inserti64x4(first, thirty_two_at(blocks + 36), 1)},
            halves_among(_mm512_loadu_si512(blocks), words_in_quarters(0, 0, 17, 17))};
  }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(blocks + kAhead);
    blocks += 68;
  }

  const uint8_t* blocks;
};

struct WideInt8 : InOrder {
  static constexpr int kWeights = 64;
  static constexpr int kSums = 1;
  static constexpr Centre kCentre = Centre::sign;
  OF_BLOCKS WideInt8(const BlockWeight& weight, int64_t n)
      : values(weight.row(n)), scale(weight.scale[n]) {}

  OF_BLOCKS WideWeights<1> weights(int) const {
    return {{_mm512_loadu_si512(values)}, _mm512_set1_ps(scale)};
  }
  OF_BLOCKS void to_next() {
    __builtin_prefetch(values + kAhead);
    values += 64;
  }

  const uint8_t* values;
  float scale;
};

// In groups of 64, whose first 32 weights are the low nibbles.
struct WideInt4 {
  static constexpr int kWeights = 512;
  static constexpr int kSums = 4;
  static constexpr int kVectors = 2;
  static constexpr Centre kCentre = Centre::middle;
  static constexpr int kMiddle = 8;
  static constexpr Factors kFactors = Factors::eight;
  static constexpr int piece(int sum, int vector, int quarter) {
    return 128 * sum + quarter / 2 * 64 + 32 * vector + quarter % 2 * 16;
  }
  OF_BLOCKS WideInt4(const BlockWeight& weight, int64_t n)
      : values(weight.row(n)),
        scale(weight.scale + n * (weight.columns / 64)),
        minimum(weight.minimum + n * (weight.columns / 64)) {}

  OF_BLOCKS EightScales scales() const {
    EightScales read;
    std::memcpy(&read.first, scale, sizeof(read.first));
    std::memcpy(&read.second, minimum, sizeof(read.second));
    return read;
  }
  OF_BLOCKS static __m512i parts(int sum) { return in_halves(2 * sum, 2 * sum + 1); }
  OF_BLOCKS WideWeights<2> weights(int sum) const {
    const __m512i read = _mm512_loadu_si512(values + 64 * sum);
    return {{low_nibbles(read), high_nibbles(read)}};
  }
  OF_BLOCKS void to_next() {
    for (int at = 0; at < 64 * kSums; at += 64)
      __builtin_prefetch(values + kAhead + at);
    __builtin_prefetch(scale + kAhead / 16);
    __builtin_prefetch(minimum + kAhead / 16);
    values += 64 * kSums;
    scale += 2 * kSums;
    minimum += 2 * kSums;
  }

  const uint8_t* values;
  const float* scale;
  const float* minimum;
};

// 256 weights in kBytes, in four sums.
template <int kBytes>
struct BlockOf256 {
  static constexpr int kWeights = 256;
  static constexpr int kSums = 4;
  static constexpr int kVectors = 1;
  OF_BLOCKS BlockOf256(const BlockWeight& weight, int64_t n) : block(weight.row(n)) {}
  OF_BLOCKS void to_next() {
    for (int at = 0; at < kBytes; at += 64) __builtin_prefetch(block + kAhead + at);
    block += kBytes;
  }

  const uint8_t* block;
};

// Of Q4_K and Q5_K. The low nibbles of 64 bytes are the parts p and p + 2, the high
// ones p + 1 and p + 3.
template <int kBytes>
struct EightParts : BlockOf256<kBytes> {
  static constexpr Centre kCentre = Centre::middle;
  static constexpr Factors kFactors = Factors::eight;
  static constexpr int first_part(int sum) { return sum / 2 * 4 + sum % 2; }
  static constexpr int piece(int sum, int, int quarter) {
    return 32 * (first_part(sum) + quarter / 2 * 2) + quarter % 2 * 16;
  }
  OF_BLOCKS EightParts(const BlockWeight& weight, int64_t n)
      : BlockOf256<kBytes>(weight, n) {}

  OF_BLOCKS EightScales scales() const { return scales_of_k(this->block); }
  OF_BLOCKS static __m512i parts(int sum) {
    return in_halves(first_part(sum), first_part(sum) + 2);
  }
  OF_BLOCKS __m512i four_bits(int sum, int nibbles) const {
    const __m512i read = _mm512_loadu_si512(this->block + nibbles + sum / 2 * 64);
    return sum % 2 == 0 ? low_nibbles(read) : high_nibbles(read);
  }
};

struct WideQ4_K : EightParts<144> {
  static constexpr int kMiddle = 8;
  OF_BLOCKS WideQ4_K(const BlockWeight& weight, int64_t n) : EightParts(weight, n) {}
  OF_BLOCKS WideWeights<1> weights(int sum) const { return {{four_bits(sum, 16)}}; }
};

struct WideQ5_K : EightParts<176> {
  static constexpr int kMiddle = 16;
  OF_BLOCKS WideQ5_K(const BlockWeight& weight, int64_t n) : EightParts(weight, n) {}
  OF_BLOCKS WideWeights<1> weights(int sum) const {
    const __m512i four = four_bits(sum, 48);
    const int bit = 0x01010101 << first_part(sum);
    const __mmask64 fifth =
        _mm512_test_epi8_mask(twice(block + 16), in_halves(bit, bit << 2));
    return {{_mm512_mask_add_epi8(four, fifth, four, _mm512_set1_epi8(16))}};
  }
};

struct WideQ6_K : BlockOf256<210> {
  static constexpr Centre kCentre = Centre::middle;
  static constexpr int kMiddle = 32;
  static constexpr Factors kFactors = Factors::each;
  static constexpr int piece(int sum, int vector, int quarter) {
    return InOrder::piece(sum, vector, quarter);
  }
  OF_BLOCKS WideQ6_K(const BlockWeight& weight, int64_t n) : BlockOf256(weight, n) {}

  OF_BLOCKS WideWeights<1> weights(int sum) const {
    const int half = sum / 2;
    const __m512i read = _mm512_loadu_si512(block + 64 * half);
    const __m512i two = twice(block + 128 + 32 * half);
    const bool first = sum % 2 == 0;
    const __m512i moved = first ? _mm512_sllv_epi32(two, in_halves(4, 2))
                                : _mm512_srlv_epi32(two, in_halves(0, 2));
    const __m512i high = _mm512_and_si512(moved, _mm512_set1_epi8(48));
    const __m512i low = first ? low_nibbles(read) : high_nibbles(read);
    const __m512 scales =
        _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen_at(block + 192))),
                      _mm512_set1_ps(float_at(block + 208)));
    const int scale = 4 * sum;
    return {{_mm512_or_si512(low, high)},
            _mm512_permutexvar_ps(in_quarters(scale, scale + 1, scale + 2, scale + 3),
                                  scales)};
  }
};
