const int lane = lane_id();
#if LANES > 1
#define across(acc, combine) \
  for (uint far = LANES / 2; far > 0; far /= 2) { \
    acc = combine(acc, sub_group_shuffle_xor(acc, far)); \
  }
#else
#define across(acc, combine)
#endif
// Long sums are sums of the sums of blocks: the statement that follows runs for each
// block, from `begin` to `end`.
#define in_blocks(first, last)                                                   \
  for (long begin = (first), end = min(begin + 256 * LANES, (long)(last));       \
       begin < (last); begin = end, end = min(end + 256 * LANES, (long)(last)))
