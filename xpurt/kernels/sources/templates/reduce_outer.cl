// Long sums are sums of the sums of blocks: the rounding error grows with the length of a
// block and with the number of blocks, not with their product (Higham, 1993).
#define BLOCK 64  // terms, and sums of terms

typedef struct {
  C earlier, blocks;
  int count;
} Total;

static void begin(Total* total) {
  total->earlier = total->blocks = $identity;
  total->count = 0;
}

static void add_block(Total* total, C block) {
  total->blocks = combine(total->blocks, block);
  if (++total->count < BLOCK) return;
  total->earlier = combine(total->earlier, total->blocks);
  total->blocks = $identity;
  total->count = 0;
}

static C whole(const Total* total) { return combine(total->earlier, total->blocks); }

// The kept elements are adjacent: one work-item per row; adjacent lanes have adjacent
// rows.
__kernel void $entry(__global $out_type* out, __global const $in_type* in,
                     const Layout layout) {
  const long x = get_global_id(0);
  const long y = get_global_id(1);
  const long chunk = get_global_id(2);
  const long row = x + y * layout.kept_size[0];
  if (x >= layout.kept_size[0] || row >= layout.rows) return;
  long rest = y;
  for (int d = 1; d < KEPT; ++d) {
    in += rest % layout.kept_size[d] * layout.kept_in[d];
    rest /= layout.kept_size[d];
  }
  const long first = chunk % layout.inner_chunks * layout.inner_chunk;
  const long last = min(first + layout.inner_chunk, layout.inner);
  const long outer_first = chunk / layout.inner_chunks * layout.outer_chunk;
  const long outer_last = min(outer_first + layout.outer_chunk, layout.outer);
  Total total;
  begin(&total);
  for (long o = outer_first; o < outer_last; ++o) {
    __global const $in_type* plane = in + outer_offset(&layout, o);
    for (long j = first; j < last;) {
      const long end = min(j + BLOCK, last);
      C acc = $identity;
      for (; j < end; ++j) {
        acc = combine(acc, element(plane + j * layout.stride[0], x$inner_stride));
      }
      add_block(&total, acc);
    }
  }
  leave(out, &layout, row, chunk, whole(&total));
}
