// For processors that multiply in bfloat16, AMX among them.
#if defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12's intrinsics
#include <immintrin.h>

#define INSTRUCTIONS                                                        \
  __attribute__((                                                           \
      target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni," \
             "avx512bf16")))
#define WITH_AVX2_AND_F16C
#define WITH_AVX512
#define NAMESPACE blocks_of_avx512
#define KERNELS kAvx512BlockKernels
#include "blocks/block_rows.h"
#pragma GCC diagnostic pop
#endif
