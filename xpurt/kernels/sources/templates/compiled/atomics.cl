// Sums of many work-items in one element, in any order. Types without an atomic sum
// compare and exchange the word that the element is in.
static void atomic_add_i(volatile __global int* p, int value) { atomic_add(p, value); }

#define ATOMIC_ADD_FLOATING(name, type, bits, exchange)                           \
  static void name(volatile __global type* p, type value) {                       \
    volatile __global bits* word = (volatile __global bits*)p;                    \
    bits seen = *word, before;                                                    \
    do {                                                                          \
      before = seen;                                                              \
      seen = exchange(word, before, as_##bits(as_##type(before) + value));        \
    } while (seen != before);                                                     \
  }
ATOMIC_ADD_FLOATING(atomic_add_f, float, uint, atomic_cmpxchg)

#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
static void atomic_add_l(volatile __global long* p, long value) { atom_add(p, value); }

#ifdef cl_khr_fp64
ATOMIC_ADD_FLOATING(atomic_add_d, double, ulong, atom_cmpxchg)
#endif
#endif

// `sum` computes the new element from the bits of the old one.
#define ATOMIC_ADD_NARROW(name, type, bits, computed, sum)                        \
  static void name(volatile __global type* p, computed value) {                   \
    const ulong at = (ulong)p;                                                    \
    volatile __global uint* word = (volatile __global uint*)(at & ~(ulong)3);     \
    const uint shift = (uint)(at & 3) * 8;                                        \
    const uint mask = ((1u << bits) - 1) << shift;                                \
    uint seen = *word, before;                                                    \
    do {                                                                          \
      before = seen;                                                              \
      const uint old = (before & mask) >> shift;                                  \
      const uint made = (uint)(sum) << shift & mask;                              \
      seen = atomic_cmpxchg(word, before, (before & ~mask) | made);               \
    } while (seen != before);                                                     \
  }
ATOMIC_ADD_NARROW(atomic_add_b, ushort, 16, float, bits_b(of_bits_b(old) + value))
ATOMIC_ADD_NARROW(atomic_add_h, half, 16, float, bits_h(of_bits_h(old) + value))
ATOMIC_ADD_NARROW(atomic_add_s, short, 16, int, old + value)
ATOMIC_ADD_NARROW(atomic_add_c, char, 8, int, old + value)
ATOMIC_ADD_NARROW(atomic_add_u, uchar, 8, int, old + value)
