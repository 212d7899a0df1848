// The derivative of log(gamma(x)): by the recurrence up to 10, then by the asymptotic
// series (Abramowitz, Stegun 1964, 6.3.5, 6.3.7, 6.3.18).
static C digamma_of(C x) {
  if (x == 0) return copysign((C)INFINITY, -x);
  C sum = 0;
  if (x < 0) {
    if (x == floor(x)) return NAN;
    sum = -3.141592653589793 * cospi(x) / sinpi(x);
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const C z = 1 / (x * x);
  C tail = 691.0 / 32760.0 - z / 12;
  tail = 1.0 / 132.0 - z * tail;
  tail = 1.0 / 240.0 - z * tail;
  tail = 1.0 / 252.0 - z * tail;
  tail = 1.0 / 120.0 - z * tail;
  return sum + log(x) - 1 / (2 * x) - z * (1.0 / 12.0 - z * tail);
}

// The derivative of digamma (Abramowitz, Stegun 1964, 6.4.6, 6.4.7, 6.4.12).
static C trigamma_of(C x) {
  C sum = 0, side = 1;
  if (x < 0.5) {
    const C sine = sinpi(x);
    sum = -9.869604401089358 / (sine * sine);
    side = -1;
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const C z = 1 / (x * x);
  C tail = 5.0 / 66.0 - z * (691.0 / 2730.0 - z * (7.0 / 6.0));
  tail = 1.0 / 42.0 - z * (1.0 / 30.0 - z * tail);
  tail = 1.0 / 6.0 - z * (1.0 / 30.0 - z * tail);
  return side * (sum + (1 + 1 / (2 * x) + z * tail) / x);
}

// The Bernoulli numbers B(2j), divided by the factorials of 2j.
__constant const C bernoulli[12] = {
    0.083333333333333333, -0.0013888888888888889, 3.3068783068783069e-5,
    -8.2671957671957672e-7, 2.0876756987868099e-8, -5.2841901386874932e-10,
    1.3382536530684679e-11, -3.3896802963225829e-13, 8.5860620562778446e-15,
    -2.1748686985580619e-16, 5.5090028283602295e-18, -1.3954464685812523e-19,
};

// The Hurwitz zeta function, the sum of (q + k)^-s, by the Euler-Maclaurin formula
// (Abramowitz, Stegun 1964, 23.1.30; Johansson 2014).
static C zeta_of(C s, C q) {
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (s != floor(s)) return NAN;
  }
  if (s != s || q != q) return NAN;
  // DLMF 25.11.43. The power is a factor of both terms, as pow(q, -s) may be 0.
  if (q > 1e8) return (1 / (s - 1) + 1 / (2 * q)) * pow(q, 1 - s);
  const C small = sizeof(C) == 8 ? 1.1e-16 : 6e-8;
  C sum = 0;
  // The limit of k is for a q so far below 0 that adding 1 does not change it.
  for (long k = 0; k < 9 || (q <= 9 && k < 1 << 24); ++k) {
    const C term = pow(q, -s);
    sum += term;
    // While q is negative the largest terms are still to come.
    if (q > 0 && fabs(term) <= small * fabs(sum)) return sum;
    q += 1;
  }
  C power = pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  C factor = s;
  for (int j = 0; j < 12; ++j) {
    power /= q;
    const C term = bernoulli[j] * factor * power;
    sum += term;
    if (fabs(term) <= small * fabs(sum)) return sum;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2);
    power /= q;
  }
  return sum;
}

// The derivative of a gamma number x by the shape `a`, at a fixed probability P(a, x):
// minus the derivative of P by `a`, divided by the density (Figurnov, Mohamed, Mnih:
// "Implicit Reparameterization Gradients", 2018).

// For a large shape, by Cornish's and Fisher's expansion of x in the normal quantile z
// of its probability (Abramowitz, Stegun 1964, 26.4), in powers of r = a^(-1/2).
static C gradient_of_large_shape(C a, C x) {
  const C root = sqrt(a), r = 1 / root;
  C z = 3 * root * (cbrt(x / a) - 1 + 1 / (9 * a));  // Wilson, Hilferty 1931
  for (int k = 0; k < 3; ++k) {
    const C y = z * z;
    const C found = root * z + (y - 1) / 3 + r * z * (y - 7) / 36 -
                    r * r * (y * (3 * y + 7) - 16) / 810 +
                    r * r * r * z * (y * (9 * y + 256) - 433) / 38880;
    const C slope = root + 2 * z / 3 + r * (3 * y - 7) / 36 -
                    r * r * z * (12 * y + 14) / 810 +
                    r * r * r * (y * (45 * y + 768) - 433) / 38880;
    z += ((x - a) - found) / slope;
  }
  const C y = z * z, s = 1 / a;
  return 1 + r * z / 2 - s * r * z * (y - 7) / 72 +
         s * s * (y * (3 * y + 7) - 16) / 810 -
         s * s * r * z * (y * (9 * y + 256) - 433) / 25920;
}

// By the series of P (6.5.29), each of whose terms x^n / ((a + 1) ... (a + n)) has a
// logarithmic derivative that is a sum.
static C gradient_by_series(C a, C x) {
  C term = 1, sum = 1, by_a = 0, rate = 0;
  for (int n = 1; n < 400 && term > 1e-17 * sum; ++n) {
    term *= x / (a + n);
    rate -= 1 / (a + n);
    sum += term;
    by_a += term * rate;
  }
  return -x / a * (sum * (log(x) - digamma_of(a + 1)) + by_a);
}

// By the continued fraction of 1 - P (6.5.31), from its end to its beginning, with the
// derivative of each quotient.
static C gradient_by_fraction(C a, C x) {
  C value = 0, by_a = 0;
  for (int n = 120; n >= 1; --n) {
    const C above = n * (a - n), below = x + 2 * n + 1 - a + value;
    by_a = (n - above * (by_a - 1) / below) / below;
    value = above / below;
  }
  const C below = x + 1 - a + value;
  const C h = 1 / below, h_by_a = -(by_a - 1) * h * h;
  return x * (h * (log(x) - digamma_of(a)) + h_by_a);
}

static C gamma_gradient_of(C a, C x) {
  if (!(a > 0) || !(x > 0)) return x == 0 && a > 0 ? (C)0 : (C)NAN;
  if (a > 100) return gradient_of_large_shape(a, x);
  return x < a + 2 ? gradient_by_series(a, x) : gradient_by_fraction(a, x);
}
