// Random numbers of several blocks at once, on the host.
#pragma once

#include <array>
#include <cstdint>

namespace xpurt {

// The words of consecutive blocks: word[k][i] is word k of block i.
struct Batch {
  static constexpr int kBlocks = 16;
  uint32_t word[4][kBlocks];
};

Batch batch_of(uint64_t seed, uint64_t offset, uint64_t first_block);

// mean + std * the normal random numbers of each block, in the order of the elements.
std::array<float, 4 * Batch::kBlocks> normals_of_batch(const Batch& batch, float mean,
                                                       float std);

}  // namespace xpurt
