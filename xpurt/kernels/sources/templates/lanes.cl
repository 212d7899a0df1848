const int lane = lane_id();
#if LANES > 1
#define across(acc, combine) \
  for (uint far = LANES / 2; far > 0; far /= 2) { \
    acc = combine(acc, sub_group_shuffle_xor(acc, far)); \
  }
#else
#define across(acc, combine)
#endif
