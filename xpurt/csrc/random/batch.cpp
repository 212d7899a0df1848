// Note [Vectors of random numbers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The loops over the blocks of a batch call the kernels' functions, and the compiler
// vectorizes them: on x86 also for vectors of 8 numbers, if the processor has them. The
// bits equal those of one block at a time, as no operation is replaced by another.
// "no-trapping-math" allows the compiler to compute operations whose results are not
// needed.
#include "random/batch.h"

#include "random/forms.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define IN_VECTORS                                          \
  __attribute__((flatten, target_clones("avx2", "default"), \
                 optimize("O3", "no-trapping-math", "fp-contract=off")))
#else
#define IN_VECTORS
#endif

namespace xpurt {
namespace {

constexpr int kBlocks = Batch::kBlocks;

IN_VECTORS void words_of_batch(uint64_t seed, uint64_t offset, uint64_t first,
                               Batch* batch) {
  for (int i = 0; i < kBlocks; ++i) {
    const Single::Words words = Single::words_of(seed, offset, first + i, 0);
    for (int k = 0; k < 4; ++k) batch->word[k][i] = words.word[k];
  }
}

// Makes normal numbers of two words, like Single::normals_of.
IN_VECTORS void normals_of_words(const uint32_t* __restrict radii,
                                 const uint32_t* __restrict turns, float mean,
                                 float std, float* __restrict cosines,
                                 float* __restrict sines) {
  for (int i = 0; i < kBlocks; ++i) {
    const float radius = Single::root_of(2 * Single::minus_log_of(radii[i]));
    const Single::Direction direction = Single::direction_of(turns[i]);
    cosines[i] = mean + std * (radius * direction.cosine);
    sines[i] = mean + std * (radius * direction.sine);
  }
}

}  // namespace

Batch batch_of(uint64_t seed, uint64_t offset, uint64_t first_block) {
  Batch batch;
  words_of_batch(seed, offset, first_block, &batch);
  return batch;
}

std::array<float, 4 * kBlocks> normals_of_batch(const Batch& batch, float mean,
                                                float std) {
  float made[4][kBlocks];
  for (int k = 0; k < 4; k += 2) {
    normals_of_words(batch.word[k], batch.word[k + 1], mean, std, made[k], made[k + 1]);
  }
  std::array<float, 4 * kBlocks> found;
  for (int i = 0; i < kBlocks; ++i) {
    for (int k = 0; k < 4; ++k) found[4 * i + k] = made[k][i];
  }
  return found;
}

}  // namespace xpurt
