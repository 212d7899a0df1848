// Lines along another dimension than the last: one work-item per line; adjacent lanes
// have adjacent lines.
__kernel void $entry($params, const long outer, const long line, const long inner) {
  const long x = get_global_id(0);
  const long y = get_global_id(1);
  if (x >= inner || y >= outer) return;
  const long base = y * line * inner;
#define LINE(statement)                              \
  for (long j = 0; j < line; ++j) {                \
    const long i = base + j * inner + x;             \
    statement                                        \
  }
#define ACROSS(acc, combined)
$body
}
