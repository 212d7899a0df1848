// The sum of c[k] T_k(t), by Clenshaw's recurrence (1955).
static C chebyshev_sum(C t, int n, __constant const C* c) {
  C after = 0, later = 0;
  for (int k = n - 1; k > 0; --k) {
    const C now = 2 * t * after - later + c[k];
    later = after;
    after = now;
  }
  return t * after - later + c[0];
}

// In float the first `narrow` coefficients of a table are enough.
#define SERIES(table, t, narrow) \
  chebyshev_sum(t, sizeof(C) == 8 ? (int)(sizeof(table) / sizeof(C)) : (narrow), table)
