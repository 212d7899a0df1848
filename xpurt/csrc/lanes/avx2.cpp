// For AVX2: 16 registers hold 6 rows of sums, half a row of the panel and a number.
#if defined(__x86_64__)
#define LANES 8
#define MOST_ROWS 6
#define AHEAD 16
#define PART_FLOATS 1 << 17
#define LEAST_PART 96
#define INSTRUCTIONS "avx2,fma"
#define KERNELS kAvx2Kernels
#define NAMESPACE of_avx2
#include "lanes/lanes.h"
#endif
