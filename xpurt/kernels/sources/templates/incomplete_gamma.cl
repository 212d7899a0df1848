// The regularized incomplete gamma functions P and Q (DLMF 8): by the power series if x
// is not above a, by the continued fraction of Q if it is (Gautschi 1979), and by a
// separate series for Q if both are small.

// log(1 + x) - x for small x, without cancellation.
static C log1p_less(C x) {
  // log(1 + x) = 2 artanh(r)
  const C r = x / (2 + x), square = r * r;
  C sum = 0, power = r * square;
  for (int k = 3; k < 80; k += 2) {
    const C term = power / k;
    sum += term;
    if (fabs(term) <= fabs(sum) * (sizeof(C) == 8 ? 1e-17 : 1e-9)) break;
    power *= square;
  }
  return 2 * sum - x * r;
}

// x^a exp(-x) / gamma(a + 1). For large a by Stirling's series, as the logarithms of
// the factors are large even if that of the product is not (DiDonato, Morris 1986).
static C gamma_front(C a, C x) {
  if (a < 12) return exp(a * log(x) - x - lgamma(a + 1));
  const C z = 1 / (a * a);
  C rest = 1.0 / 1680.0 - z * (1.0 / 1188.0);
  rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * rest))) / a;
  const C far = (x - a) / a;
  const C less = far < -0.6 || far > 1.5 ? log(x / a) - far : log1p_less(far);
  return exp(a * less - rest) / sqrt(6.283185307179586 * a);
}

static C lower_series(C a, C x) {
  C sum = 1, term = 1;
  for (int k = 1; k < 2000; ++k) {
    term *= x / (a + k);
    sum += term;
    if (term <= sum * (sizeof(C) == 8 ? 1.1e-16 : 6e-8)) break;
  }
  return gamma_front(a, x) * sum;
}

// By Lentz's method (1976).
static C upper_fraction(C a, C x) {
  const C tiny = 1e-30;
  C b = x + 1 - a, c = 1 / tiny, d = 1 / b, value = d;
  for (int k = 1; k < 2000; ++k) {
    const C numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    c = fabs(c) < tiny ? tiny : c;
    value *= c * d;
    if (fabs(c * d - 1) <= (sizeof(C) == 8 ? 1.1e-16 : 6e-8)) break;
  }
  return gamma_front(a, x) * a * value;
}

static C upper_series(C a, C x) {
  C sum = 0, term = 1;
  for (int k = 1; k < 200; ++k) {
    term *= -x / k;
    sum += term / (a + k);
    if (fabs(term) <= fabs(sum) * (sizeof(C) == 8 ? 1.1e-16 : 6e-8)) break;
  }
  const C logarithm = a * log(x) - lgamma(1 + a);
  return -expm1(logarithm) - exp(logarithm) * a * sum;
}

// Q for large a and x near a, by Temme's uniform expansion (DLMF 8.12.4, 8.12.8). A
// series or a fraction would need about 9 sqrt(a) terms. The coefficients are rounded
// from the exact fractions of 8.12.11.
__constant const C temme0[18] = {
    -0.33333333333333331, 0.083333333333333329, -0.014814814814814815,
    0.0011574074074074073, 0.00035273368606701942, -0.0001787551440329218,
    3.9192631785224377e-05, -2.185448510679992e-06, -1.85406221071516e-06,
    8.2967113409530865e-07, -1.7665952736826078e-07, 6.7078535434014984e-09,
    1.0261809784240309e-08, -4.3820360184533529e-09, 9.1476995822367902e-10,
    -2.5514193994946248e-11, -5.8307721325504256e-11, 2.4361948020667415e-11,
};

__constant const C temme1[10] = {
    -0.0018518518518518519, -0.003472222222222222, 0.0026455026455026454,
    -0.00099022633744855963, 0.00020576131687242798, -4.018775720164609e-07,
    -1.8098550334489977e-05, 7.6491609160811098e-06, -1.6120900894563446e-06,
    4.647127802807434e-09,
};

__constant const C temme2[6] = {
    0.0041335978835978834, -0.0026813271604938273, 0.0007716049382716049,
    2.0093878600823047e-06, -0.0001073665322636516, 5.2923448829120125e-05,
};

#define IS_UNIFORM(a, x) ((a) > 20000 && fabs((x) - (a)) < 0.2 * (a))

static C polynomial_of(C x, int n, __constant const C* c) {
  C sum = 0;
  for (int k = n - 1; k >= 0; --k) sum = fma(sum, x, c[k]);
  return sum;
}

// `side` is 1 for Q and -1 for P.
static C uniform_part(C a, C x, C side) {
  const C far = (x - a) / a, half_square = fmax(-log1p_less(far), (C)0);
  const C eta = copysign(sqrt(2 * half_square), far);
  C rest = polynomial_of(eta, 6, temme2) / a;
  rest = (polynomial_of(eta, 10, temme1) + rest) / a;
  rest = (polynomial_of(eta, 18, temme0) + rest) / sqrt(6.283185307179586 * a);
  return erfc(side * eta * sqrt(a / 2)) / 2 + side * rest * exp(-a * half_square);
}

// For x up to 1.1, Q is smaller than P if a is below this.
static C least_for_lower(C x) { return x <= 0.5 ? -0.4 / log(x) : x / 1.1; }

static C igamma_of(C a, C x) {
  if (a < 0 || x < 0) return NAN;
  if (a == 0) return x > 0 ? (C)1 : (C)NAN;
  if (x == 0) return 0;
  if (isinf(a)) return isinf(x) ? (C)NAN : (C)0;
  if (isinf(x)) return 1;
  if (a != a || x != x) return NAN;
  if (IS_UNIFORM(a, x)) return uniform_part(a, x, -1);
  return x <= 1 || x <= a ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

static C igammac_of(C a, C x) {
  if (a < 0 || x < 0) return NAN;
  if (a == 0) return x > 0 ? (C)0 : (C)NAN;
  if (x == 0) return 1;
  if (isinf(a)) return isinf(x) ? (C)NAN : (C)1;
  if (isinf(x)) return 0;
  if (a != a || x != x) return NAN;
  if (IS_UNIFORM(a, x)) return uniform_part(a, x, 1);
  if (x <= 1.1) {
    return a > least_for_lower(x) ? 1 - lower_series(a, x) : upper_series(a, x);
  }
  return x <= a ? 1 - lower_series(a, x) : upper_fraction(a, x);
}
