// Functions of real numbers that OpenCL C has not. Literals get the type of C.
#define ONE ((C)1)

static C times(C a, C b) { return a * b; }

// NaN wins, as in torch.maximum and torch.minimum.
static C maximum_of(C a, C b) { return a != a || a > b ? a : b; }
static C minimum_of(C a, C b) { return a != a || a < b ? a : b; }

static C trunc_quotient(C a, C b) { return trunc(a / b); }

static C remainder_of(C a, C b) {
  const C rest = fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

// Python's floor division, as PyTorch has it: exact where a / b would be rounded up.
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

// To a number of digits behind the point, or before it if that is negative.
static C round_to(C x, C digits) {
  C power = 1;
  for (int k = 0; k < fabs(digits); ++k) power *= 10;
  return digits < 0 ? rint(x / power) * power : rint(x * power) / power;
}

// Drivers take much longer for arguments without a result, and in vectors with such.
static C acosh_of(C x) { return x >= 1 ? acosh(fmax(x, (C)1)) : (C)NAN; }
static C atanh_of(C x) {
  const bool within = fabs(x) < 1;
  const C edge = fabs(x) == 1 ? copysign((C)INFINITY, x) : (C)NAN;
  return within ? atanh(within ? x : (C)0) : edge;
}

static C sigmoid_of(C x) { return 1 / (1 + exp(-x)); }

static C softplus_of(C x) { return x > 20 ? x : log1p(exp(x)); }

static C logaddexp_of(C a, C b) {
  if (a == b && isinf(a)) return a;
  return maximum_of(a, b) + log1p(exp(-fabs(a - b)));
}

static C logaddexp2_of(C a, C b) {
  if (a == b && isinf(a)) return a;
  return maximum_of(a, b) + log2(1 + exp2(-fabs(a - b)));
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

static C logit_slope(C x, C eps) {
  if (eps < 0) return x < 0 || x > 1 ? (C)NAN : 1 / (x * (1 - x));
  return x < eps || x > 1 - eps ? (C)0 : 1 / (x * (1 - x));
}

static C gelu_of(C x) { return x * (1 + erf(x * 0.7071067811865476)) / 2; }

static C gelu_slope(C x) {
  const C density = exp(-x * x / 2) * 0.3989422804014327;
  return (1 + erf(x * 0.7071067811865476)) / 2 + x * density;
}

// GELU by tanh: sqrt(2 / pi) (x + 0.044715 x^3) is the argument.
static C gelu_tanh_of(C x) {
  const C inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return x * (1 + tanh(inner)) / 2;
}

static C gelu_tanh_slope(C x) {
  const C scale = 0.7978845608028654;
  const C t = tanh(scale * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x) / 2;
}

static C mish_slope(C x) {
  const C t = tanh(softplus_of(x));
  return t + x * sigmoid_of(x) * (1 - t * t);
}

static C softplus_slope(C x, C beta, C threshold) {
  const C z = exp(x * beta);
  return x * beta > threshold ? (C)1 : z / (z + 1);
}
