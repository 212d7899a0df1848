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
