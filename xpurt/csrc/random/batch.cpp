// Note [Vectors of random numbers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The loops over the blocks of a batch are made of the kernels' functions, and the
// compiler makes vectors of them: on x86 of 8 numbers too, where the processor has
// such. The bits are those of one block at a time, as no operation is taken for
// another; that the ones which are not needed are computed as well is what
// "no-trapping-math" allows.
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

// As Single::normals_of makes them of two words.
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
