// The gradients of the keys and of the values, which have the same strides.
TILES $entry(__global T* out, __global T* values_out, __global const C* sums,
             __global const C* inner, __global const T* query, __global const T* key,
             __global const T* value, __global const T* grad MASK, const C scale,
             const Layout layout) {
  __local C queries[TILE][EMBED + 1], keys[TILE][EMBED + 1], values[TILE][EMBED + 1];
  __local C grads[TILE][EMBED + 1], weights[TILE][TILE + 1], changes[TILE][TILE + 1];
  WORK_ITEM
  C of_key[EACH], of_value[EACH];
  for (int c = 0; c < EACH; ++c) of_key[c] = of_value[c] = 0;
  fetch(keys, key, tile, layout.keys, layout.key, key_base);
  fetch(values, value, tile, layout.keys, layout.value, value_base);
  for (long first = CAUSAL ? tile : 0; first < layout.queries; first += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    fetch(queries, query, first, layout.queries, layout.query, query_base);
    fetch(grads, grad, first, layout.queries, layout.grad, grad_base);
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool there = first + x < layout.queries;
    const long at = sums_base + (first + x) * layout.sums[2];
    const C score = SCORE(x, y, first + x, tile + y);
    const C weight = there ? WEIGHT(score, sums[at]) : 0;
    weights[y][x] = weight;
    changes[y][x] =
        there ? weight * (product(grads, x, values, y) - inner[at]) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < TILE; ++j) {
      for (int c = 0; c < EACH; ++c) {
        const int e = x + c * TILE;
        if (e >= EMBED) continue;
        of_value[c] += weights[y][j] * grads[j][e];
        of_key[c] += changes[y][j] * queries[j][e];
      }
    }
  }
  if (tile + y >= layout.keys) return;
  for (int c = 0; c < EACH; ++c) {
    const int e = x + c * TILE;
    if (e >= EMBED) continue;
    const long i = out_base + (tile + y) * layout.out[2] + e * layout.out[3];
    put(out, i, of_key[c] * scale);
    put(values_out, i, of_value[c]);
  }
}
