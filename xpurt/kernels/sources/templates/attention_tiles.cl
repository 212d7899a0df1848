// A work-group of TILE x TILE work-items computes a tile of queries, or of keys, of one
// head, and loops over the tiles of the other side. Only one tile of weights exists at
// a time (Dao, Fu, Ermon, Rudra and Ré, 2022). The work-items of one y share the
// elements of a result's row: each has every TILE-th element.
#define TILE 16
#define EACH ((EMBED + TILE - 1) / TILE)
#define TILES __attribute__((reqd_work_group_size(TILE, TILE, 1))) __kernel void

typedef __local C Rows[EMBED + 1];

// Copies rows of a matrix into local memory, with zeros beyond the last row.
static void fetch(Rows* rows, __global const T* p, long first, long count,
                  const long* stride, long base) {
  for (int at = get_local_id(1) * TILE + get_local_id(0); at < TILE * EMBED;
       at += TILE * TILE) {
    const int r = at / EMBED, e = at % EMBED;
    rows[r][e] =
        first + r < count ? get(p, base + (first + r) * stride[2] + e * stride[3]) : 0;
  }
}

static C product(Rows* a, int row, Rows* b, int other) {
  C sum = 0;
  for (int e = 0; e < EMBED; ++e) sum += a[row][e] * b[other][e];
  return sum;
}

#define WORK_ITEM                                                          \
  const int x = get_local_id(0), y = get_local_id(1);                  \
  const long tile = get_group_id(0) * TILE;                            \
  const long batch = get_group_id(1) / layout.heads;                   \
  const long head = get_group_id(1) % layout.heads;                    \
  const long query_base = batch * layout.query[0] + head * layout.query[1]; \
  const long key_base = batch * layout.key[0] + head * layout.key[1];  \
  const long value_base = batch * layout.value[0] + head * layout.value[1]; \
  const long out_base = batch * layout.out[0] + head * layout.out[1];  \
  const long grad_base = batch * layout.grad[0] + head * layout.grad[1]; \
  const long sums_base = batch * layout.sums[0] + head * layout.sums[1];

// The score of a query and a key, both in local memory.
#define SCORE(row_q, row_k, query, key)                                          \
  ((query) < layout.queries && (key) < layout.keys && (!CAUSAL || (key) <= (query)) \
       ? product(queries, row_q, keys, row_k) * scale +                          \
             masked(batch, head, query, key)                                     \
       : LOWEST)

#define WEIGHT(score, sum) ((score) == LOWEST ? 0 : exp((score) - (sum)))
