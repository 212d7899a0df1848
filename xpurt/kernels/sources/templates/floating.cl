// Functions of real numbers that are missing from OpenCL C. Literals get the type of C.
#define ONE ((C)1)

static C times(C a, C b) { return a * b; }

// The result is NaN if one operand is, as in torch.maximum and torch.minimum.
static C maximum_of(C a, C b) { return a != a || a > b ? a : b; }
static C minimum_of(C a, C b) { return a != a || a < b ? a : b; }

static C trunc_quotient(C a, C b) { return trunc(a / b); }

static C remainder_of(C a, C b) {
  const C rest = fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

// Python's floor division, as in PyTorch: exact even if a / b would be rounded up.
static C floor_quotient(C a, C b) {
  if (b == 0) return a / b;
  const C rest = fmod(a, b);
  C quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign((C)0, a / b);
  const C floored = floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

static C power_of(C a, C b) {
  if (b == 2) return a * a;
  if (b == 1) return a;
  return pow(a, b);
}

// For a scalar exponent PyTorch takes a square root, which differs from IEEE's pow: the
// root of -inf is NaN, and that of -0 is -0.
static C power_by_scalar(C a, C b) {
  if (b == 2) return a * a;
  if (b == 0.5) return sqrt(a);
  if (b == -0.5) return 1 / sqrt(a);
  return power_of(a, b);
}

// Rounds to a number of decimals after the point, or before it if the number is
// negative.
static C round_to(C x, C digits) {
  C power = 1;
  const C most = fmin(fabs(digits), (C)400);  // infinite in every type
  for (int k = 0; k < most; ++k) power *= 10;
  return digits < 0 ? rint(x / power) * power : rint(x * power) / power;
}

// Drivers take much longer for arguments without a result, and for vectors that contain
// one.
static C acosh_of(C x) { return x >= 1 ? acosh(fmax(x, (C)1)) : (C)NAN; }
static C atanh_of(C x) {
  const bool within = fabs(x) < 1;
  const C edge = fabs(x) == 1 ? copysign((C)INFINITY, x) : (C)NAN;
  return within ? atanh(within ? x : (C)0) : edge;
}

static C sigmoid_of(C x) { return 1 / (1 + exp(-x)); }

static C logaddexp_of(C a, C b) {
  if (a == b && isinf(a)) return a;
  return maximum_of(a, b) + log1p(exp(-fabs(a - b)));
}

static C logaddexp2_of(C a, C b) {
  if (a == b && isinf(a)) return a;
  return maximum_of(a, b) + log1p(exp2(-fabs(a - b))) * 1.4426950408889634;
}

static C xlogy_of(C x, C y) { return y != y ? y : x == 0 ? (C)0 : x * log(y); }
static C xlog1py_of(C x, C y) { return y != y ? y : x == 0 ? (C)0 : x * log1p(y); }

static C entropy_of(C x) {
  return x != x ? x : x > 0 ? -x * log(x) : x == 0 ? (C)0 : -(C)INFINITY;
}

static C sinc_of(C x) { return x == 0 ? (C)1 : sinpi(x) / (3.141592653589793 * x); }

static C logit_of(C x, C eps) {
  if (eps >= 0) x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
  return log(x / (1 - x));
}

// A quotient of the gradient g, as the reciprocal of a subnormal x would be infinite.
static C logit_backward_of(C g, C x, C eps) {
  if (eps < 0) return x < 0 || x > 1 ? (C)NAN : g / (x * (1 - x));
  return x < eps || x > 1 - eps ? (C)0 : g / (x * (1 - x));
}

// (1 + erf(x / sqrt(2))) / 2, without the loss of digits where erf is near -1. There
// the rounding error of erfc's argument s counts, too, and is corrected: the slope of
// log(erfc(s)) is near -2s.
static C normal_below(C x) {
  const C s = -0.7071067811865476 * x;
  const C lost = fma(-0.7071067811865476, x, -s);
  const C whole = erfc(s) / 2;
  return s > 1 && s < 40 ? fma(whole, -2 * s * lost, whole) : whole;
}

static C gelu_of(C x) { return x * normal_below(x); }

static C gelu_slope(C x) {
  const C density = exp(-x * x / 2) * 0.3989422804014327;
  return normal_below(x) + x * density;
}

// GELU by tanh. Its argument is u = sqrt(2 / pi) (x + 0.044715 x^3). (1 + tanh(u)) / 2
// is computed as 1 / (1 + exp(-2u)), which loses no digits where tanh(u) is near -1.
static C gelu_tanh_of(C x) {
  const C twice = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  return x / (1 + exp(-twice));
}

static C gelu_tanh_slope(C x) {
  const C twice = 1.5957691216057308 * (x + 0.044715 * x * x * x);
  const C z = exp(-fabs(twice)), above = 1 / (1 + z), below = z * above;
  const C slope = 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
  return (twice < 0 ? below : above) + x * above * below * slope;
}

// tanh(log(1 + e)) with e = exp(x) is n / (n + 2) with n = e (e + 2). Beyond x = 30 it
// is 1.
static C mish_of(C x) {
  const C e = exp(x), n = e * (e + 2);
  return x > 30 ? x : x * (n / (n + 2));
}

static C mish_slope(C x) {
  const C e = exp(x), rest = 1 / (e * (e + 2) + 2);
  const C slope = 4 * (x * e) * (1 + e) * rest;
  return x > 30 ? (C)1 : rest * (e * (e + 2) + slope);
}

static C softplus_slope(C x, C beta, C threshold) {
  const C z = exp(x * beta);
  return x * beta > threshold ? (C)1 : z / (z + 1);
}
