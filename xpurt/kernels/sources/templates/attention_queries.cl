// The gradient of the queries. `inner` is, for each query, the inner product of the
// result and its gradient.
TILES $entry(__global T* out, __global const C* sums, __global const C* inner,
             __global const T* query, __global const T* key, __global const T* value,
             __global const T* grad MASK, const C scale, const Layout layout) {
  __local C queries[TILE][EMBED + 1], keys[TILE][EMBED + 1], values[TILE][EMBED + 1];
  __local C grads[TILE][EMBED + 1], weights[TILE][TILE + 1];
  WORK_ITEM
  C acc[EACH];
  for (int c = 0; c < EACH; ++c) acc[c] = 0;
  fetch(queries, query, tile, layout.queries, layout.query, query_base);
  fetch(grads, grad, tile, layout.queries, layout.grad, grad_base);
  const bool there = tile + y < layout.queries;
  const C sum = there ? sums[sums_base + (tile + y) * layout.sums[2]] : 0;
  const C dotted = there ? inner[sums_base + (tile + y) * layout.sums[2]] : 0;
  const long last = CAUSAL ? min(layout.keys, tile + TILE) : layout.keys;
  for (long first = 0; first < last; first += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    fetch(keys, key, first, layout.keys, layout.key, key_base);
    fetch(values, value, first, layout.keys, layout.value, value_base);
    barrier(CLK_LOCAL_MEM_FENCE);
    const C score = SCORE(y, x, tile + y, first + x);
    weights[y][x] = WEIGHT(score, sum) * (product(grads, y, values, x) - dotted);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < TILE; ++j) {
      for (int c = 0; c < EACH; ++c) {
        const int e = x + c * TILE;
        if (e < EMBED) acc[c] += weights[y][j] * keys[j][e];
      }
    }
  }
  if (!there) return;
  for (int c = 0; c < EACH; ++c) {
    const int e = x + c * TILE;
    if (e >= EMBED) continue;
    put(out, out_base + (tile + y) * layout.out[2] + e * layout.out[3],
        acc[c] * scale);
  }
}
