// Orthogonal polynomials by their recurrences (Abramowitz, Stegun 1964, 22.7). A degree
// is truncated to an integer; a negative degree gives 0. A recurrence ends when its
// value is NaN.

// The Chebyshev polynomials share a recurrence, which begins with 1 and `second`.
// Between -1 and 1 it loses digits with n, so there a trigonometric formula is used.
static C chebyshev_recurrence(C x, long n, C second) {
  if (n == 0) return 1;
  C before = 1, now = second;
  for (long k = 1; k < n && now == now; ++k) {
    const C next = 2 * x * now - before;
    before = now;
    now = next;
  }
  return now;
}

static C alternating(long n) { return n % 2 == 0 ? 1 : -1; }

static C chebyshev_t(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? (C)1 : alternating(n);
  if (n > 6 && fabs(x) < 1) return (x < 0 ? alternating(n) : 1) * cos(n * acos(fabs(x)));
  return chebyshev_recurrence(x, n, x);
}

static C chebyshev_u(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (fabs(x) == 1) return (n + 1) * (x > 0 ? (C)1 : alternating(n));
  if (n > 8 && fabs(x) < 1) {
    const C angle = acos(fabs(x));
    return (x < 0 ? alternating(n) : 1) * sin((n + 1) * angle) / sin(angle);
  }
  return chebyshev_recurrence(x, n, 2 * x);
}

// V and W. V(-x) is W(x) up to the sign, so |x| is used: near -1 the angle would have
// lost its digits.
static C third_or_fourth(C x, long n, bool fourth) {
  const C angle = acos(fabs(x)), side = x < 0 ? alternating(n) : 1;
  if (fourth) return side * sin((n + 0.5) * angle) / sin(angle / 2);
  return side * cos((n + 0.5) * angle) / cos(angle / 2);
}

static C chebyshev_v(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? (C)1 : alternating(n) * (2 * n + 1);
  if (n > 8 && fabs(x) < 1) return third_or_fourth(x, n, x < 0);
  return chebyshev_recurrence(x, n, 2 * x - 1);
}

static C chebyshev_w(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? (C)(2 * n + 1) : alternating(n);
  if (n > 8 && fabs(x) < 1) return third_or_fourth(x, n, x >= 0);
  return chebyshev_recurrence(x, n, 2 * x + 1);
}

// PyTorch gives NaN for Hermite polynomials beyond these degrees.
#define MOST_OF_HERMITE (sizeof(C) == 8 ? 512 : 128)

static C hermite_h(C x, C degree) {
  const long n = isfinite(degree) ? (long)degree : -1;
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (n > MOST_OF_HERMITE) return NAN;
  C before = 1, now = 2 * x;
  for (long k = 1; k < n; ++k) {
    const C next = 2 * x * now - 2 * k * before;
    before = now;
    now = next;
  }
  return now;
}

static C hermite_he(C x, C degree) {
  const long n = isfinite(degree) ? (long)degree : -1;
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (n > MOST_OF_HERMITE) return NAN;
  C before = 1, now = x;
  for (long k = 1; k < n; ++k) {
    const C next = x * now - k * before;
    before = now;
    now = next;
  }
  return now;
}

static C laguerre_l(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (n == 0 || x == 0) return 1;
  C before = 1, now = 1 - x;
  for (long k = 1; k < n && now == now; ++k) {
    const C next = ((2 * k + (1 - x)) * now - k * before) / (k + 1);
    before = now;
    now = next;
  }
  return now;
}

static C legendre_p(C x, C degree) {
  const long n = (long)degree;
  if (n < 0) return 0;
  if (fabs(x) == 1) return x > 0 ? (C)1 : alternating(n);
  if (n == 0) return 1;
  C before = 1, now = x;
  for (long k = 1; k < n && now == now; ++k) {
    const C next = ((2 * k + 1) * x * now - k * before) / (k + 1);
    before = now;
    now = next;
  }
  return now;
}
