// One sub-group per query steps along its scores, dense (batch, heads, queries, keys).
// The range has a dimension for each: a division per query would cost more than its
// scores.
#define EVERY(statement)                              \
  for (long before = 0; before < whole; before += LANES) { \
    const long j = before + lane;                     \
    statement                                         \
  }                                                   \
  if (whole + lane < count) {                         \
    const long j = whole + lane;                      \
    statement                                         \
  }
#define LINE                                                        \
  const long query = work_item_of_lanes();                          \
  const long head = get_global_id(1), batch = get_global_id(2);     \
  const long lane = lane_id();                                      \
  if (query >= layout.queries || head >= layout.heads) return;      \
  const long row = (batch * layout.heads + head) * layout.queries + query; \
  const long at = batch * layout.sums[0] + head * layout.sums[1] +  \
                  (layout.first + query) * layout.sums[2];          \
  const long base = row * layout.keys;                              \
  const long count =                                                \
      CAUSAL ? min(layout.keys, layout.first + query + 1) : layout.keys; \
  const long whole = count / LANES * LANES;
