// Lines along the last dimension: one sub-group per line, with its lanes along the
// line.
$attributes
__kernel void $entry($params, const long outer, const long length, const long inner) {
  const long row = work_item_of_lanes();
  const long lane = lane_id();
  if (row >= outer) return;
  const long base = row * length;
  const long whole = length / LANES * LANES;
#define LINE(statement)                              \
  for (long j = 0; j < whole; j += LANES) {          \
    const long i = base + j + lane;                  \
    statement                                        \
  }                                                  \
  if (whole + lane < length) {                       \
    const long i = base + whole + lane;              \
    statement                                        \
  }
$across
$body
}
