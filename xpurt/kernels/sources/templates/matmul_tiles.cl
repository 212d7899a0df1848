// out = alpha * a @ b (+ beta * self), any strides. A work-group of ITEMS x ITEMS
// work-items computes a tile of TILE x TILE, from slices of a and b in local memory. Each
// work-item has 4 x 4 elements of it, ITEMS apart, so that adjacent work-items access
// adjacent elements. ITEMS is 16, or less if the device has too little for that.
#define ITEMS $items
#define EACH 4
#define TILE (ITEMS * EACH)
#define DEPTH (sizeof(C) > 8 ? 8 : 16)

typedef struct {
  long m, n, k;
  long out[3], a[3], b[3], self[3];  // strides: batch, row, column
} Layout;

__attribute__((reqd_work_group_size(ITEMS, ITEMS, 1)))
__kernel void $entry($params, const Layout layout) {
  __local C left[DEPTH][TILE + 1];
  __local C right[DEPTH][TILE + 1];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int item = ty * ITEMS + tx;
  const long row0 = get_group_id(1) * TILE, column0 = get_group_id(0) * TILE;
  const long batch = get_global_id(2);
  p1 += batch * layout.a[0];
  p2 += batch * layout.b[0];
  C acc[EACH][EACH];
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) acc[r][c] = 0;
  }
  for (long k0 = 0; k0 < layout.k; k0 += DEPTH) {
    for (int at = item; at < DEPTH * TILE; at += ITEMS * ITEMS) {
      const int d = at % DEPTH, t = at / DEPTH;
      const long row = row0 + t, k = k0 + d;
      const long i = row * layout.a[1] + k * layout.a[2];
      left[d][t] = row < layout.m && k < layout.k ? $load1 : (C)0;
    }
    for (int at = item; at < DEPTH * TILE; at += ITEMS * ITEMS) {
      const int t = at % TILE, d = at / TILE;
      const long column = column0 + t, k = k0 + d;
      const long i = k * layout.b[1] + column * layout.b[2];
      right[d][t] = column < layout.n && k < layout.k ? $load2 : (C)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 0; d < DEPTH; ++d) {
      for (int r = 0; r < EACH; ++r) {
        const C value = left[d][ty + r * ITEMS];
        for (int c = 0; c < EACH; ++c) {
          const C other = right[d][tx + c * ITEMS];
          acc[r][c] += $product;
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < EACH; ++r) {
    for (int c = 0; c < EACH; ++c) {
      const long row = row0 + ty + r * ITEMS, column = column0 + tx + c * ITEMS;
      if (row >= layout.m || column >= layout.n) continue;
      C value = times(alpha, acc[r][c]);
      long i;
#if $adds
      i = batch * layout.self[0] + row * layout.self[1] + column * layout.self[2];
      value += times(beta, $load3);
#endif
      value = $activation;
      i = batch * layout.out[0] + row * layout.out[1] + column * layout.out[2];
      $store;
    }
  }
}
