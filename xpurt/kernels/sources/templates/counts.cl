// Random numbers that take as many draws as they need, and choices: the second part of
// random.cl, in the same subset of OpenCL C and C++.

// The random words of one element: those of draws 0, 1, ... of its own block.
typedef struct {
  ulong seed, offset, element;
  uint draw;
  int left;
  Words words;
} Supply;

FUNCTION Supply supply_of(ulong seed, ulong offset, ulong element) {
  Supply supply;
  supply.seed = seed;
  supply.offset = offset;
  supply.element = element;
  supply.draw = 0;
  supply.left = 0;
  return supply;
}

#ifdef __cplusplus
#define SUPPLY Supply& supply
#define FROM(member) supply.member
#define GIVEN supply
#else
#define SUPPLY Supply* supply
#define FROM(member) supply->member
#define GIVEN supply
#endif

FUNCTION Number next_of(SUPPLY) {
  if (FROM(left) == 0) {
    FROM(words) = words_of(FROM(seed), FROM(offset), FROM(element), FROM(draw));
    FROM(draw) += 1;
    FROM(left) = NUMBERS;
  }
  FROM(left) -= 1;
  return number_of(FROM(words), NUMBERS - 1 - FROM(left));
}

// Rejection ends at the latest after this number of attempts, with the likeliest
// number. Each attempt succeeds with a probability of 1/2 at least, if the parameters
// are not NaN.
enum { MOST_ATTEMPTS = 256 };

FUNCTION REAL log_of(REAL x) {
  int exponent = (int)(AS_BITS(x) >> (DIGITS - 1)) - BIAS;
  REAL f = x * power_of_two(-exponent) - 1;
  if (f > NUM(0.41421)) {
    ++exponent;
    f = x * power_of_two(-exponent) - 1;
  }
  return log_of_parts(exponent, f);
}

// log(1 + f) for f > -1.
FUNCTION REAL log_beside_one(REAL f) {
  return f > NUM(-0.29) && f < NUM(0.41) ? log_of_parts(0, f) : log_of(1 + f);
}

// log(k!) minus Stirling's log(sqrt(2 pi k) (k / e)^k), for k > 0.
FUNCTION REAL above_stirling(REAL k) {
  const REAL r = reciprocal_of(k), z = r * r;
  return r * (NUM(0.08333333333333333) -
              z * (NUM(0.002777777777777778) - z * NUM(0.0007936507936507937)));
}

// k log(k / mean) + mean - k, for k > 0: Loader: "Fast and Accurate Computation of
// Binomial Probabilities", 2000.
FUNCTION REAL deviance_of(REAL k, REAL mean) {
  const REAL away = k - mean;
  return k * log_beside_one(away * reciprocal_of(mean)) - away;
}

// The logarithm of the Poisson probability of k.
FUNCTION REAL log_poisson(REAL k, REAL mean) {
  if (k == 0) return -mean;
  return -deviance_of(k, mean) - above_stirling(k) -
         NUM(0.5) * log_of(k * NUM(6.283185307179586));
}

// A number in (-1/2, 1/2), an odd multiple of 2^-(DIGITS + 1).
FUNCTION REAL centered_of(Number n) {
  const Signed part = (Signed)(n >> (NUMBER_BITS - DIGITS)) - ((Signed)1 << (DIGITS - 1));
  return ((REAL)part + NUM(0.5)) * power_of_two(-DIGITS);
}

// For a mean below 10, the number of exponential waits that fit into it. Else Hoermann:
// "The Transformed Rejection Method for Generating Poisson Random Variables", 1993
// (PTRS).
FUNCTION REAL poisson_of(SUPPLY, REAL mean) {
  if (!(mean > 0)) return mean == 0 ? (REAL)0 : mean;
  if (mean < 10) {
    REAL waited = minus_log_of(next_of(GIVEN));
    int count = 0;
    for (; waited < mean; ++count) waited = waited + minus_log_of(next_of(GIVEN));
    return count;
  }
  if (mean > power_of_two(100)) return mean;
  const REAL b = NUM(0.931) + NUM(2.53) * root_of(mean);
  const REAL a = NUM(0.02483) * b - NUM(0.059);
  const REAL scale = NUM(1.1239) + NUM(1.1328) * reciprocal_of(b - NUM(3.4));
  const REAL sure = NUM(0.9277) - NUM(3.6224) * reciprocal_of(b - 2);
  for (int attempt = 0; attempt < MOST_ATTEMPTS; ++attempt) {
    const REAL u = centered_of(next_of(GIVEN));
    const Number n = next_of(GIVEN);
    const REAL v = unit_of(n);
    const REAL inside = NUM(0.5) - (u < 0 ? -u : u);
    const REAL over = reciprocal_of(inside);
    const REAL k = floor((2 * a * over + b) * u + mean + NUM(0.43));
    if (inside >= NUM(0.07) && v <= sure) return k;
    if (k < 0 || (inside < NUM(0.013) && v > inside)) continue;
    const REAL bound = log_of(scale * reciprocal_of(a * over * over + b));
    if (bound - minus_log_of(n) <= log_poisson(k, mean)) return k;
  }
  return floor(mean);
}

// The logarithm of the binomial probability of k.
FUNCTION REAL log_binomial(REAL k, REAL n, REAL p, REAL q) {
  if (k == 0) return n * log_beside_one(-p);
  if (k == n) return n * log_of(p);
  const REAL spread = n * reciprocal_of(k) * reciprocal_of(n - k);
  return above_stirling(n) - above_stirling(k) - above_stirling(n - k) -
         deviance_of(k, n * p) - deviance_of(n - k, n * q) +
         NUM(0.5) * log_of(spread * NUM(0.15915494309189535));
}

// For p up to 1/2. For a mean below 10, the number of waits for a success that fit into
// n trials. Else Hoermann: "The Generation of Binomial Random Variates", 1993 (BTRS).
FUNCTION REAL binomial_of_half(SUPPLY, REAL n, REAL p) {
  const REAL q = 1 - p, mean = n * p;
  if (mean < 10) {
    // p is near the subnormal numbers: no success can be expected.
    if (p < power_of_two(-100)) return 0;
    const REAL scale = reciprocal_of(-log_beside_one(-p));
    REAL trials = 0;
    int count = -1;
    for (; trials <= n; ++count) {
      const REAL wait = minus_log_of(next_of(GIVEN)) * scale;
      const REAL whole = floor(wait);
      trials = trials + (whole < wait ? whole + 1 : whole);
    }
    return count;
  }
  const REAL deviation = root_of(mean * q);
  const REAL b = NUM(1.15) + NUM(2.53) * deviation;
  const REAL a = NUM(0.0248) * b + NUM(0.01) * p - NUM(0.0873);
  const REAL scale = (NUM(2.83) + NUM(5.1) * reciprocal_of(b)) * deviation;
  const REAL sure = NUM(0.92) - NUM(4.2) * reciprocal_of(b);
  const REAL mode = floor((n + 1) * p);
  const REAL highest = log_binomial(mode, n, p, q);
  for (int attempt = 0; attempt < MOST_ATTEMPTS; ++attempt) {
    const REAL u = centered_of(next_of(GIVEN));
    const Number number = next_of(GIVEN);
    const REAL v = unit_of(number);
    const REAL inside = NUM(0.5) - (u < 0 ? -u : u);
    const REAL over = reciprocal_of(inside);
    const REAL k = floor((2 * a * over + b) * u + mean + NUM(0.5));
    if (k < 0 || k > n) continue;
    if (inside >= NUM(0.07) && v <= sure) return k;
    const REAL bound = log_of(scale * reciprocal_of(a * over * over + b));
    if (bound - minus_log_of(number) <= log_binomial(k, n, p, q) - highest) return k;
  }
  return mode;
}

FUNCTION REAL binomial_of(SUPPLY, REAL n, REAL p) {
  if (n != n || p != p) return n + p;
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (n > power_of_two(60)) return floor(n * p);
  return p <= NUM(0.5) ? binomial_of_half(GIVEN, n, p)
                       : n - binomial_of_half(GIVEN, n, 1 - p);
}

// A gamma number with scale 1. Marsaglia, Tsang: "A Simple Method for Generating Gamma
// Variables", 2000. For a shape below 1 it is a number with the shape + 1, multiplied by
// u^(1 / shape).
FUNCTION REAL gamma_of(SUPPLY, REAL shape) {
  if (shape != shape || shape > power_of_two(60)) return shape;
  if (!(shape > power_of_two(-100))) return 0;
  REAL scale = 1;
  if (shape < 1) {
    scale = exp_of(-minus_log_of(next_of(GIVEN)) * reciprocal_of(shape));
    shape = shape + 1;
  }
  const REAL d = shape - NUM(0.3333333333333333);
  const REAL c = reciprocal_of(root_of(9 * d));
  for (int attempt = 0; attempt < MOST_ATTEMPTS; ++attempt) {
    const REAL radius = root_of(2 * minus_log_of(next_of(GIVEN)));
    const Direction direction = direction_of(next_of(GIVEN));
    const Number n = next_of(GIVEN);
    const REAL x = radius * direction.cosine, away = c * x, t = 1 + away;
    if (t < power_of_two(-20)) continue;
    const REAL v = t * t * t, square = x * x;
    const bool inside = unit_of(n) < 1 - NUM(0.0331) * square * square;
    // log(v) - v + 1, of which the difference of log(t) and `away` is the small part.
    const REAL bound =
        NUM(0.5) * square + d * (1 - v + 3 * log_beside_one(away));
    if (inside || -minus_log_of(n) < bound) return d * v * scale;
  }
  return d * scale;
}

// The place of a category of this weight in the race that decides the choice. The high
// bits are the order of an exponential wait divided by the weight; the low 24 bits are
// the number of the category. Categories of weight 0 are last.
FUNCTION long place_of(Number n, REAL weight, long category) {
  const Bits bits = AS_BITS(weight);
  const long exponent = (long)(bits >> (DIGITS - 1));
  if (exponent == 0) return (long)1 << 62 | category;  // zero or subnormal
  const Bits mantissa = bits & (((Bits)1 << (DIGITS - 1)) - 1);
  const REAL share = AS_REAL(mantissa | (Bits)BIAS << (DIGITS - 1));
  const REAL wait = minus_log_of(n) * reciprocal_of(share);
  const long order = (long)(AS_BITS(wait) >> (DIGITS - 24));
  return (order + ((2 * BIAS + 2 - exponent) << 23)) << 24 | category;
}

// The weight as an integer below 2^39, relative to the largest weight, `most`.
FUNCTION long whole_weight_of(REAL weight, REAL most) {
  const Bits bits = AS_BITS(weight);
  const int exponent = (int)(bits >> (DIGITS - 1));
  const int largest = (int)(AS_BITS(most) >> (DIGITS - 1));
  const Bits implied = exponent == 0 ? 0 : (Bits)1 << (DIGITS - 1);
  const ulong mantissa = (bits & (((Bits)1 << (DIGITS - 1)) - 1)) | implied;
  const int below = (largest > 1 ? largest : 1) - (exponent > 1 ? exponent : 1);
  const int shift = 39 - DIGITS - below;
  if (shift < -63) return 0;
  return (long)(shift < 0 ? mantissa >> -shift : mantissa << shift);
}
#undef SUPPLY
#undef FROM
#undef GIVEN
