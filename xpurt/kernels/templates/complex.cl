// Complex numbers: C is a vector of the real part and the imaginary one, R their type.
// Sums, differences, and products with a number that is not complex are those of vectors.
#define COMPLEX 1
#define ONE ((C)(1, 0))
#define LOG_2 0.6931471805599453
#define LOG_10 2.302585092994046

// Lanes hand on numbers alone.
#define SHUFFLED(acc, far) \
  ((C)(sub_group_shuffle_xor(acc.x, far), sub_group_shuffle_xor(acc.y, far)))

static C times(C a, C b) {
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

static C exp_of(C z) {
  const R size = exp(z.x);
  return z.y == 0 ? (C)(size, z.y) : (C)(size * cos(z.y), size * sin(z.y));
}

static C log_of(C z) { return (C)(log(hypot(z.x, z.y)), atan2(z.y, z.x)); }

// The root with a real part that is not negative; no difference of large numbers.
static C sqrt_of(C z) {
  const R size = hypot(z.x, z.y);
  if (size == 0) return (C)(0, z.y);
  if (isinf(z.y)) return (C)((R)INFINITY, z.y);
  const R root = sqrt((fabs(z.x) + size) / 2), rest = z.y / (2 * root);
  return z.x >= 0 ? (C)(root, rest) : (C)(fabs(rest), copysign(root, z.y));
}

static C power_of(C a, C b) {
  if (b.y == 0 && b.x == 2) return times(a, a);
  if (b.y == 0 && b.x == 1) return a;
  if (b.x == 0 && b.y == 0) return ONE;
  if (a.x == 0 && a.y == 0) return b.x > 0 ? (C)0 : (C)((R)INFINITY, (R)NAN);
  return exp_of(times(b, log_of(a)));
}

static C power_by_scalar(C a, C b) {
  if (b.y == 0 && b.x == 0.5) return sqrt_of(a);
  if (b.y == 0 && b.x == -0.5) return over(ONE, sqrt_of(a));
  return power_of(a, b);
}

static C sinh_of(C z) {
  return (C)(sinh(z.x) * cos(z.y), z.y == 0 ? z.y : cosh(z.x) * sin(z.y));
}

static C cosh_of(C z) {
  return (C)(cosh(z.x) * cos(z.y), z.y == 0 ? z.y * sinh(z.x) : sinh(z.x) * sin(z.y));
}

// Kahan, "Branch cuts for complex elementary functions", 1987.
static C tanh_of(C z) {
  if (fabs(z.x) > 20) return (C)(copysign((R)1, z.x), copysign((R)0, z.y));
  const R t = tan(z.y), s = sinh(z.x), beta = 1 + t * t, rho = sqrt(1 + s * s);
  const R below = 1 + beta * s * s;
  return isinf(t) ? (C)(rho / s, 1 / t) : (C)(beta * rho * s / below, t / below);
}

static C sin_of(C z) { return turned_back(sinh_of(turned(z))); }
static C cos_of(C z) { return cosh_of(turned(z)); }
static C tan_of(C z) { return turned_back(tanh_of(turned(z))); }

static C direction_of(C z) {
  const R size = hypot(z.x, z.y);
  return size == 0 ? (C)0 : z / size;
}
