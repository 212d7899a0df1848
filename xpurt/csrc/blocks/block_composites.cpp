#include "blocks/block_composites.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

namespace xpurt {
namespace {

using at::Tensor;

// Blocks of one format, (rows, blocks, bytes).
class Blocks {
 public:
  explicit Blocks(Tensor bytes) : bytes_(std::move(bytes)) {}

  Tensor bytes(int64_t from, int64_t count) const {
    return bytes_.narrow(2, from, count);
  }
  // Of one float16, (rows, blocks, 1).
  Tensor half(int64_t from) const {
    return bytes(from, 2).contiguous().view(at::kHalf).to(at::kFloat);
  }
  // Of int8, (rows, blocks, count).
  Tensor integers(int64_t from, int64_t count) const {
    return bytes(from, count).contiguous().view(at::kChar);
  }
  // The low four bits of `count` bytes, and then the high ones, for each `step` bytes.
  Tensor nibbles(int64_t from, int64_t count, int64_t step) const {
    const Tensor steps = bytes(from, count).unflatten(2, {-1, step});
    const Tensor low = at::bitwise_and(steps, 15);
    return at::cat({low, steps.bitwise_right_shift(4)}, 3).flatten(2);
  }
  // The bits of four bytes, from the lowest one.
  Tensor bits(int64_t from) const {
    const Tensor shifts = at::arange(8, bytes_.options());
    const Tensor each = bytes(from, 4).unsqueeze(3).bitwise_right_shift(shifts);
    return at::bitwise_and(each, 1).flatten(2);
  }
  // Of Q4_K and Q5_K: the factors and offsets of eight parts, (rows, blocks, 8, 1).
  std::pair<Tensor, Tensor> scales_of_parts() const {
    const Tensor first = bytes(4, 4), second = bytes(8, 4), third = bytes(12, 4);
    const auto six_bits = [](const Tensor& low, const Tensor& high) {
      return at::bitwise_and(low, 15) + high.bitwise_right_shift(6) * 16;
    };
    const Tensor factors =
        at::cat({at::bitwise_and(first, 63), six_bits(third, first)}, 2);
    const Tensor offsets = at::cat(
        {at::bitwise_and(second, 63), six_bits(third.bitwise_right_shift(4), second)},
        2);
    return {(factors * half(0)).unsqueeze(3), (offsets * half(2)).unsqueeze(3)};
  }

 private:
  Tensor bytes_;
};

Tensor q5_k_values(const Blocks& blocks) {
  const auto [factors, offsets] = blocks.scales_of_parts();
  const Tensor shifts =
      at::arange(8, blocks.bytes(0, 1).options()).unsqueeze(1);  // (part, 1)
  const Tensor fifth =
      at::bitwise_and(blocks.bytes(16, 32).unsqueeze(2).bitwise_right_shift(shifts), 1);
  const Tensor four = blocks.nibbles(48, 128, 32).unflatten(2, {8, 32});
  return (four + fifth * 16).to(at::kFloat) * factors - offsets;
}

Tensor q6_k_values(const Blocks& blocks) {
  // Of each half of a block: four parts, of which two share their bytes of four bits
  // and all share their bytes of two.
  std::vector<Tensor> parts;
  for (int64_t part = 0; part < 8; ++part) {
    const int64_t half = part / 4, quarter = part % 4;
    const Tensor four = blocks.bytes(64 * half + 32 * (quarter % 2), 32);
    const Tensor two = blocks.bytes(128 + 32 * half, 32);
    parts.push_back(at::bitwise_and(four.bitwise_right_shift(quarter / 2 * 4), 15) +
                    at::bitwise_and(two.bitwise_right_shift(2 * quarter), 3) * 16);
  }
  const Tensor words = at::cat(parts, 2).to(at::kFloat) - 32;
  const Tensor factors = blocks.integers(192, 16).to(at::kFloat) * blocks.half(208);
  return words.unflatten(2, {16, 16}) * factors.unsqueeze(3);
}

Tensor values_of(const Blocks& blocks, BlockFormat format) {
  const auto centered = [&](const Tensor& words, int64_t zero) {
    return (words.to(at::kFloat) - zero) * blocks.half(0);
  };
  switch (format) {
    case BlockFormat::q4_0:
      return centered(blocks.nibbles(2, 16, 16), 8);
    case BlockFormat::q4_1:
      return centered(blocks.nibbles(4, 16, 16), 0) + blocks.half(2);
    case BlockFormat::q5_0:
      return centered(blocks.nibbles(6, 16, 16) + blocks.bits(2) * 16, 16);
    case BlockFormat::q5_1:
      return centered(blocks.nibbles(8, 16, 16) + blocks.bits(4) * 16, 0) +
             blocks.half(2);
    case BlockFormat::q8_0:
      return centered(blocks.integers(2, 32), 0);
    case BlockFormat::q4_k: {
      const auto [factors, offsets] = blocks.scales_of_parts();
      const Tensor words = blocks.nibbles(16, 128, 32).unflatten(2, {8, 32});
      return words.to(at::kFloat) * factors - offsets;
    }
    case BlockFormat::q5_k:
      return q5_k_values(blocks);
    default:
      return q6_k_values(blocks);
  }
}

}  // namespace

Tensor values_of_blocks_composite(const Tensor& blocks, BlockFormat format) {
  const Blocks each(blocks.unflatten(1, {-1, block_size(format).bytes}));
  return values_of(each, format).flatten(1);
}

}  // namespace xpurt
