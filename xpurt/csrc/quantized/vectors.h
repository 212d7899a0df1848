// Loops that the compiler vectorizes for several processors.
#pragma once

// The function is compiled for AVX-512, for AVX2 and for any processor, and the best
// one is taken when the library is loaded. Sums may be reordered.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define IN_ANY_ORDER                                                           \
  __attribute__((flatten,                                                      \
                 target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "associative-math", "no-signed-zeros",         \
                          "no-trapping-math", "fp-contract=fast")))
#else
#define IN_ANY_ORDER
#endif
