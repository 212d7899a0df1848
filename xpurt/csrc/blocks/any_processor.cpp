// For any processor, by what the compiler makes of vectors.
#pragma GCC diagnostic ignored "-Wpsabi"  // inlined, all of them
#define INSTRUCTIONS
#define NAMESPACE blocks_of_any
#define KERNELS kAnyBlockKernels
#include "blocks/block_rows.h"
