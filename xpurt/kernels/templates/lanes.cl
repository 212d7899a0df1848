#if LANES > 1
const int lane = get_sub_group_local_id();
#define across(acc, combine) \
  for (uint far = LANES / 2; far > 0; far /= 2) { \
    acc = combine(acc, sub_group_shuffle_xor(acc, far)); \
  }
#else
const int lane = 0;
#define across(acc, combine)
#endif
