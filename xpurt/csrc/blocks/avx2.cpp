// For AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#define INSTRUCTIONS __attribute__((target("avx2,fma,f16c")))
#define WITH_AVX2_AND_F16C
#define NAMESPACE blocks_of_avx2
#define KERNELS kAvx2BlockKernels
#include "blocks/block_rows.h"
#endif
