// Puts what the lanes of a sub-group have each, one `other` at a time, into all of them.
#if LANES > 1
#define ACROSS(acc, combined)                        \
  for (uint far = LANES / 2; far > 0; far /= 2) {    \
    const C other = sub_group_shuffle_xor(acc, far); \
    acc = combined;                                  \
  }
#else
#define ACROSS(acc, combined)
#endif
