// The reduced elements are adjacent: one sub-group per row, with its lanes along the
// row.
$attributes
__kernel void $entry(__global $out_type* out, __global const $in_type* in,
                     const Layout layout) {
  const long row = work_item_of_lanes();
  const long lane = lane_id();
  if (row >= layout.rows) return;
  const long chunk = get_global_id(1);
  long rest = row;
  for (int d = 0; d < KEPT; ++d) {
    in += rest % layout.kept_size[d] * layout.kept_in[d];
    rest /= layout.kept_size[d];
  }
  const long first = chunk % layout.inner_chunks * layout.inner_chunk;
  const long last = min(first + layout.inner_chunk, layout.inner);
  const long outer_first = chunk / layout.inner_chunks * layout.outer_chunk;
  const long outer_last = min(outer_first + layout.outer_chunk, layout.outer);
  C acc = $identity;
  for (long o = outer_first; o < outer_last; ++o) {
    __global const $in_type* line = in + outer_offset(&layout, o);
    long j = first;
    for (; j + LANES <= last; j += LANES) {
      acc = combine(acc, element(line, (j + lane)$inner_stride));
    }
    if (j + lane < last) acc = combine(acc, element(line, (j + lane)$inner_stride));
  }
#if LANES > 1
  for (uint far = LANES / 2; far > 0; far /= 2) {
    acc = combine(acc, SHUFFLED(acc, far));
  }
#endif
  if (lane == 0) leave(out, &layout, row, chunk, acc);
}
