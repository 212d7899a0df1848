// Combines the values of all lanes of a sub-group, one `other` at a time. Each lane
// gets the result.
#if LANES > 1
#define ACROSS(acc, combined)                        \
  for (uint far = LANES / 2; far > 0; far /= 2) {    \
    const C other = sub_group_shuffle_xor(acc, far); \
    acc = combined;                                  \
  }
#else
#define ACROSS(acc, combined)
#endif
