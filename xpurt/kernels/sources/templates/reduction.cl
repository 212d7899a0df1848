// Reductions along any dimensions. The input's dimensions are sorted into kept and
// reduced ones, each with the smallest stride first. The first reduced dimension is the
// inner loop, the others are the outer loop. Both loops are divided into chunks, which
// are the last dimension of the range.
#define KEPT $kept
#define REDUCED $reduced
#ifndef SHUFFLED
#define SHUFFLED(acc, far) sub_group_shuffle_xor(acc, far)
#endif

typedef struct {
  long rows, inner, outer, inner_chunk, outer_chunk, inner_chunks, count;
  long kept_size[KEPT], kept_in[KEPT], kept_out[KEPT];
  long size[REDUCED], stride[REDUCED];
} Layout;

static C combine(C a, C b) { return $combine; }

static C element(__global const $in_type* in, long i) {
  const $in_compute a0 = $load;
  return $transform;
}

static void leave(__global $out_type* out, const Layout* layout, long row, long chunk,
                  C acc) {
  const long n = layout->count;
  long i = 0;
#if $partial
  i = chunk * layout->rows + row;
#else
  for (int d = 0; d < KEPT; ++d) {
    i += row % layout->kept_size[d] * layout->kept_out[d];
    row /= layout->kept_size[d];
  }
#endif
  $store;
}

// The offset of an iteration of the outer loop.
static long outer_offset(const Layout* layout, long o) {
  long offset = 0;
  for (int d = 1; d < REDUCED; ++d) {
    offset += o % layout->size[d] * layout->stride[d];
    o /= layout->size[d];
  }
  return offset;
}
