// Lines along the last dimension: one sub-group per line, with its lanes along the
// line.
$attributes
__kernel void $entry($params, const long outer, const long line, const long inner) {
  const long row = work_item_of_lanes();
  const long lane = lane_id();
  if (row >= outer) return;
  const long base = row * line;
  const long whole = line / LANES * LANES;
#define LINE(statement)                              \
  for (long j = 0; j < whole; j += LANES) {          \
    const long i = base + j + lane;                  \
    statement                                        \
  }                                                  \
  if (whole + lane < line) {                       \
    const long i = base + whole + lane;              \
    statement                                        \
  }
$across
$body
}
