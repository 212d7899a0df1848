// Writes activations as integers of 16 bits, part of block_rows.h.
constexpr float kLargestWord = 32767;
constexpr float kLeast = 1e-20F, kMost = 1e30F;  // all below is normal

INSTRUCTIONS bool to_words(const float* x, int64_t size, int16_t* words,
                           PartScale& scale) {
  constexpr float kRounds = 3 << 22;  // a sum with it has no fraction
  // Magnitudes as integers are in the same order, and NaN is the largest.
  Integers most{};
  for (int64_t k = 0; k < size; k += 8) {
    Integers bits;
    std::memcpy(&bits, x + k, sizeof(bits));
    bits &= 0x7FFFFFFF;
    most = bits > most ? bits : most;
  }
  int32_t most_bits = 0;
  for (int i = 0; i < 8; ++i) most_bits = std::max(most_bits, most[i]);
  scale = {0, 0};
  const auto largest = std::bit_cast<float>(most_bits);
  if (largest != 0 && !(largest >= kLeast && largest <= kMost)) return false;
  if (largest == 0) {
    std::fill_n(words, size, 0);
    return true;
  }
  Integers sums{};
  for (int64_t k = 0; k < size; k += 8) {
    Floats values;
    std::memcpy(&values, x + k, sizeof(values));
    const Floats rounded = values * (kLargestWord / largest) + kRounds - kRounds;
    const Integers integers = __builtin_convertvector(rounded, Integers);
    sums += integers;
    const EightWords half = __builtin_convertvector(integers, EightWords);
    std::memcpy(words + k, &half, sizeof(half));
  }
  int32_t sum = 0;
  for (int i = 0; i < 8; ++i) sum += sums[i];
  scale.scale = largest / kLargestWord;
  scale.sum = scale.scale / 8 * static_cast<float>(sum);
  return true;
}
