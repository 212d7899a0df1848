// Complex numbers. C is a vector of the real and the imaginary part, R the type of the
// parts. Sums, differences, and products with a real number are those of vectors.
#define COMPLEX 1
#define ONE ((C)(1, 0))
#define LOG_2 0.6931471805599453
#define LOG_10 2.302585092994046

// Sub-groups shuffle scalars only.
#define SHUFFLED(acc, far) \
  ((C)(sub_group_shuffle_xor(acc.x, far), sub_group_shuffle_xor(acc.y, far)))

// Each product is rounded, as on the CPU. A product fused with the difference would
// give a rounding error or infinity where the CPU gives zero or NaN.
static C times(C a, C b) {
#pragma OPENCL FP_CONTRACT OFF
  return (C)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

static C fused_times(C a, C b) {
  return (C)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Smith, "Algorithm 116: Complex division", 1962.
static C over(C a, C b) {
  if (fabs(b.x) >= fabs(b.y)) {
    if (b.x == 0 && b.y == 0) return (C)(a.x / fabs(b.x), a.y / fabs(b.y));
    const R ratio = b.y / b.x, scale = 1 / (b.x + b.y * ratio);
    return (C)((a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
  }
  const R ratio = b.x / b.y, scale = 1 / (b.x * ratio + b.y);
  return (C)((a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}

static C turned(C z) { return (C)(-z.y, z.x); }       // i z
static C turned_back(C z) { return (C)(z.y, -z.x); }  // -i z

#define IS_DOUBLE (sizeof(R) == 8)
#define MOST_OF_EXP ((R)(IS_DOUBLE ? 709 : 88))

// exp(x) times a factor and a direction. One part of these may be so small that the
// product is finite while exp(x) is not. So x is reduced in steps, with exact
// differences.
static C exp_times(R x, R factor, C direction) {
  const R part = IS_DOUBLE ? 512 : 64;
  for (int k = 0; k < 2 && x > MOST_OF_EXP; ++k) {
    x -= part;
    direction *= exp(part);
  }
  return exp(x) * factor * direction;
}

static C direction_at(R angle) { return (C)(cos(angle), sin(angle)); }

static C exp_of(C z) {
  if (z.y == 0) return (C)(exp(z.x), z.y);
  if (isinf(z.x) && !isfinite(z.y)) return z.x > 0 ? (C)(z.x, (R)NAN) : (C)(0, copysign((R)0, z.y));
  return exp_times(z.x, 1, direction_at(z.y));
}

// log|z|. Near 1 it is computed from |z|^2 - 1; else from z scaled to a size whose
// square neither overflows nor underflows.
static R log_of_size(C z) {
  const R x = fmax(fabs(z.x), fabs(z.y)), y = fmin(fabs(z.x), fabs(z.y));
  if (isnan(z.x) || isnan(z.y)) return hypot(z.x, z.y);  // infinite or NaN
  if (x > 0.5 && x < 2) return log1p((x - 1) * (x + 1) + y * y) / 2;
  const int power = IS_DOUBLE ? 600 : 80;
  if (x < ldexp((R)1, -power) && x > 0) {
    const R size = hypot(ldexp(z.x, power), ldexp(z.y, power));
    return log(size) - power * (R)LOG_2;
  }
  if (x > ldexp((R)1, power) && isfinite(x))
    return log(hypot(ldexp(z.x, -power), ldexp(z.y, -power))) + power * (R)LOG_2;
  return log(hypot(z.x, z.y));
}

static C log_of(C z) { return (C)(log_of_size(z), atan2(z.y, z.x)); }

// The root whose real part is not negative, without a difference of large numbers. The
// argument is multiplied by an even power of two if its absolute value is infinite or
// subnormal.
static C sqrt_of(C z) {
  if (z.x == 0 && z.y == 0) return (C)(0, z.y);
  if (isinf(z.y)) return (C)((R)INFINITY, z.y);
  const R most = fmax(fabs(z.x), fabs(z.y));
  const int normal = IS_DOUBLE ? 960 : 100, digits = IS_DOUBLE ? 54 : 24;
  const int power = most > ldexp((R)1, normal)    ? -digits
                    : most < ldexp((R)1, -normal) ? digits
                                                  : 0;
  const R x = ldexp(z.x, 2 * power), y = ldexp(z.y, 2 * power);
  const R root = sqrt((fabs(x) + hypot(x, y)) / 2), rest = y / (2 * root);
  const C found = x >= 0 ? (C)(root, rest) : (C)(fabs(rest), copysign(root, y));
  return (C)(ldexp(found.x, -power), ldexp(found.y, -power));
}

// If both parts are NaN, the product of an infinite number is infinite (C99, G.5.1).
static C times_infinite(C a, C b) {
  const C found = times(a, b);
  if (!isnan(found.x) || !isnan(found.y)) return found;
  const bool first = any(isinf(a)), second = any(isinf(b));
  if (!first && !second) return found;
  if (first) a = (C)(copysign((R)isinf(a.x), a.x), copysign((R)isinf(a.y), a.y));
  if (second) b = (C)(copysign((R)isinf(b.x), b.x), copysign((R)isinf(b.y), b.y));
  a = (C)(isnan(a.x) ? copysign((R)0, a.x) : a.x, isnan(a.y) ? copysign((R)0, a.y) : a.y);
  b = (C)(isnan(b.x) ? copysign((R)0, b.x) : b.x, isnan(b.y) ? copysign((R)0, b.y) : b.y);
  return (R)INFINITY * times(a, b);
}

static C power_of(C a, C b) {
  if (b.y == 0 && b.x == 1) return a;
  if (b.x == 0 && b.y == 0) return ONE;
  return exp_of(times_infinite(b, log_of(a)));
}

static C power_by_scalar(C a, C b) {
  if (b.y == 0 && b.x == 2) return times(a, a);
  if (b.y == 0 && b.x == 0.5) return sqrt_of(a);
  if (b.y == 0 && b.x == -0.5) return over(ONE, sqrt_of(a));
  return power_of(a, b);
}

static C sinh_of(C z) {
  if (z.y == 0) return (C)(sinh(z.x), z.y);
  if (isinf(z.x) && !isfinite(z.y)) return (C)((R)INFINITY, (R)NAN);
  if (z.x == 0 && !isfinite(z.y)) return (C)(z.x, (R)NAN);
  const C direction = direction_at(z.y);
  if (fabs(z.x) > MOST_OF_EXP) {
    const C e = exp_times(fabs(z.x), 0.5, direction);
    return (C)(z.x < 0 ? -e.x : e.x, e.y);
  }
  return (C)(sinh(z.x) * direction.x, cosh(z.x) * direction.y);
}

static C cosh_of(C z) {
  if (z.y == 0) return (C)(cosh(z.x), !isnan(z.x) && signbit(z.x) ? -z.y : z.y);
  if (z.x == 0 && !isfinite(z.y)) return (C)((R)NAN, 0);
  if (isinf(z.x) && !isfinite(z.y)) return (C)(fabs(z.x), (R)NAN);
  const C direction = direction_at(z.y);
  if (fabs(z.x) > MOST_OF_EXP) {
    const C e = exp_times(fabs(z.x), 0.5, direction);
    return (C)(e.x, z.x < 0 ? -e.y : e.y);
  }
  return (C)(cosh(z.x) * direction.x, sinh(z.x) * direction.y);
}

// Kahan, "Branch cuts for complex elementary functions", 1987.
static C tanh_of(C z) {
  if (z.y == 0) return (C)(tanh(z.x), z.y);
  if (isinf(z.x) && !isfinite(z.y)) return (C)(copysign((R)1, z.x), copysign((R)0, z.y));
  if (z.x == 0 && !isfinite(z.y)) return (C)(z.x, (R)NAN);
  if (fabs(z.x) > 20) {
    const C direction = direction_at(z.y);
    const R rest = 4 * direction.x * direction.y * exp(-2 * fabs(z.x));
    return (C)(isnan(rest) ? rest : copysign((R)1, z.x), rest);
  }
  const R t = tan(z.y), s = sinh(z.x), beta = 1 + t * t, rho = sqrt(1 + s * s);
  const R below = 1 + beta * s * s;
  return isinf(t) ? (C)(rho / s, 1 / t) : (C)(beta * rho * s / below, t / below);
}

// 1 / (1 + exp(-z)). With c = cos(y / 2), the real part of the denominator is the sum
// of 1 - exp(-x) and 2 c^2 exp(-x). Near a pole neither of them has lost digits.
static C sigmoid_of(C z) {
  if (isinf(z.x) && !isfinite(z.y)) return (C)(z.x > 0, 0);
  if (z.x < -MOST_OF_EXP / 2) return exp_of(z);
  const R size = exp(-z.x), c = cos(z.y / 2);
  return over(ONE, (C)(2 * size * c * c - expm1(-z.x), -size * sin(z.y)));
}

static C sin_of(C z) {
  if (isinf(z.y) && !isfinite(z.x)) return (C)((R)NAN, (R)INFINITY);
  return turned_back(sinh_of(turned(z)));
}
static C cos_of(C z) { return cosh_of(turned(z)); }
static C tan_of(C z) { return turned_back(tanh_of(turned(z))); }

static C direction_of(C z) {
  const R size = hypot(z.x, z.y);
  return size == 0 ? (C)0 : z / size;
}
