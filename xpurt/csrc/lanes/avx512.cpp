// For AVX-512: 32 registers hold 12 rows of sums, a row of the panel and a number.
#if defined(__x86_64__)
#define LANES 16
#define MOST_ROWS 12
#define AHEAD 0
#define PART_FLOATS 1 << 18
#define LEAST_PART 48
#define INSTRUCTIONS "avx512f,fma"
#define KERNELS kAvx512Kernels
#define NAMESPACE of_avx512
#include "lanes/lanes.h"
#endif
