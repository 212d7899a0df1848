// One sub-group per query steps along its scores, dense (batch, heads, queries, keys).
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
  const long row = work_item_of_lanes();                                \
  const long lane = lane_id();                                \
  const long query = row % layout.queries;                          \
  const long head = row / layout.queries % layout.heads;            \
  const long batch = row / layout.queries / layout.heads;           \
  if (batch >= layout.batch) return;                                \
  const long at = batch * layout.sums[0] + head * layout.sums[1] +  \
                  (layout.first + query) * layout.sums[2];          \
  const long base = row * layout.keys;                              \
  const long count =                                                \
      CAUSAL ? min(layout.keys, layout.first + query + 1) : layout.keys; \
  const long whole = count / LANES * LANES;
