TILES $entry(__global T* out, __global C* sums, __global const T* query,
             __global const T* key, __global const T* value MASK, const C scale,
             const Layout layout) {
  __local C queries[TILE][EMBED + 1], keys[TILE][EMBED + 1], values[TILE][EMBED + 1];
  __local C weights[TILE][TILE + 1];
  WORK_ITEM
  C acc[EACH], most = LOWEST, sum = 0;
  for (int c = 0; c < EACH; ++c) acc[c] = 0;
  fetch(queries, query, tile, layout.queries, layout.query, query_base);
  const long last = CAUSAL ? min(layout.keys, tile + TILE) : layout.keys;
  for (long first = 0; first < last; first += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    fetch(keys, key, first, layout.keys, layout.key, key_base);
    fetch(values, value, first, layout.keys, layout.value, value_base);
    barrier(CLK_LOCAL_MEM_FENCE);
    weights[y][x] = SCORE(y, x, tile + y, first + x);
    barrier(CLK_LOCAL_MEM_FENCE);
    C now = most;
    for (int j = 0; j < TILE; ++j) now = fmax(now, weights[y][j]);
    const C weight = WEIGHT(weights[y][x], now);
    barrier(CLK_LOCAL_MEM_FENCE);
    weights[y][x] = weight;
    barrier(CLK_LOCAL_MEM_FENCE);
    const C shrunk = WEIGHT(most, now);
    sum *= shrunk;
    for (int c = 0; c < EACH; ++c) acc[c] *= shrunk;
    for (int j = 0; j < TILE; ++j) {
      sum += weights[y][j];
      for (int c = 0; c < EACH; ++c) {
        const int e = x + c * TILE;
        if (e < EMBED) acc[c] += weights[y][j] * values[j][e];
      }
    }
    most = now;
  }
  if (tile + y >= layout.queries) return;
  for (int c = 0; c < EACH; ++c) {
    const int e = x + c * TILE;
    if (e >= EMBED) continue;
    put(out, out_base + (tile + y) * layout.out[2] + e * layout.out[3],
        sum == 0 ? 0 : acc[c] / sum);
  }
  if (x == 0) {
    sums[sums_base + (tile + y) * layout.sums[2]] =
        sum == 0 ? HIGHEST : most + log(sum);
  }
}
