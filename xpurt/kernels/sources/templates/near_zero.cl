// exp(x) - 1, log(1 + x), tanh and erf of floats, without a branch. In vectors, the
// drivers' own take 1.2 to several times as long. All are within 1.5 units in the last
// place.
#if C_IS_DOUBLE
#define expm1_of(x) expm1(x)
#define log1p_of(x) log1p(x)
#define hyperbolic_tangent(x) tanh(x)
#define error_function(x) erf(x)
#else

// With x = k log(2) + r the result is 2^k (exp(r) - 1) + 2^k - 1. It is computed in
// halves, as 2^128 would overflow, and with k = 0 where the difference would be small.
// log(2) has two parts: a multiple of the first is exact.
static float expm1_of(float x) {
  const float within = x < -30 ? -30 : x > 89 ? 89 : x;
  const float k = fabs(x) < 0.5 ? 0 : rint(within * 1.4426950408889634);
  float r = fma(k, -0.693145751953125, within);
  r = fma(k, -1.4286068203094172e-6, r);
  float sum = fma(r, 0.0000248015873015873, 0.0001984126984126984);
  sum = fma(r, sum, 0.001388888888888889);
  sum = fma(r, sum, 0.008333333333333333);
  sum = fma(r, sum, 0.041666666666666664);
  sum = fma(r, sum, 0.16666666666666666);
  sum = fma(r, sum, 0.5);
  const float rest = fma(r * r, sum, r);
  const float half_power = as_float(((int)k + 126) << 23);
  const float found = 2 * fma(half_power, rest, half_power - 0.5);
  return fabs(x) < 1.0e-10 ? x : found;
}

// With 1 + x = 2^k (1 + m), m from -1/4 to 1/2, the result is k log(2) plus a
// polynomial in m with minimal largest relative error.
static float log1p_of(float x) {
  const int k = (as_int(1 + x) - as_int(0.75)) >> 23;
  const float power = as_float(as_int(4.0) - (k << 23));  // 2^(2 - k): not subnormal
  const float m = fma(0.25 * x, power, fma(0.25, power, -1.0));
  float sum = fma(m, 0.037672463804483414, -0.09116142243146896);
  sum = fma(m, sum, 0.11700654029846191);
  sum = fma(m, sum, -0.12727785110473633);
  sum = fma(m, sum, 0.14276240766048431);
  sum = fma(m, sum, -0.16655296087265015);
  sum = fma(m, sum, 0.19999605417251587);
  sum = fma(m, sum, -0.2500016391277313);
  sum = fma(m, sum, 0.33333340287208557);
  const float square = m * m;
  const float rest = fma(square, fma(m, sum, -0.5), m);
  const float found = fma((float)k, 0.6931471805599453, rest);
  if (fabs(x) < 1.0e-10 || x == INFINITY) return x;
  return x > -1 ? found : x == -1 ? -INFINITY : NAN;
}

// tanh. Below 0.55 a polynomial: x + x^3 p(x^2). Beyond, 1 - 2 / (exp(2 |x|) + 1) with
// exp(2 |x|) = 2^k (1 + r + r^2 q(r)). Both have minimal largest relative error. From
// 10 on the result is 1. log(2) has two parts, as above.
static float hyperbolic_tangent(float x) {
  const float size = fabs(x), square = x * x;
  float p = fma(square, -0.0062742396257817745, 0.021071679890155792);
  p = fma(square, p, -0.05385230854153633);
  p = fma(square, p, 0.13332585990428925);
  p = fma(square, p, -0.33333316445350647);
  const float near_zero = fma(x * square, p, x);
  const float twice = size > 10 ? 20 : 2 * size;  // NaN stays
  const float k = rint(twice * 1.4426950408889634);
  float r = fma(k, -0.693145751953125, twice);
  r = fma(k, -1.4286068203094172e-6, r);
  float q = fma(r, 0.0013814602280035615, 0.008368715643882751);
  q = fma(r, q, 0.04166838899254799);
  q = fma(r, q, 0.1666652113199234);
  q = fma(r, q, 0.4999999403953552);
  const float rest = fma(r * r, q, r);
  const float power = as_float(((int)k + 127) << 23);
  const float beyond = 1 - 2 / (fma(power, rest, power) + 1);
  return copysign(size < 0.55 ? near_zero : beyond, x);
}

// erf. Below 0.93 a polynomial: x + x p(x^2). Beyond, 1 - 2^h with a polynomial for h:
// log2(erfc(|x|)), and 2^h = 2^k (1 + r q(r)) with k the nearest integer. The three
// polynomials have minimal largest relative error of erf. From 4 on the result is 1.
static float error_function(float x) {
  const float size = fabs(x), square = x * x;
  float p = fma(square, -0.0005953742074780166, 0.004985940642654896);
  p = fma(square, p, -0.026761719956994057);
  p = fma(square, p, 0.11281682550907135);
  p = fma(square, p, -0.3761247992515564);
  p = fma(square, p, 0.12837915122509003);
  const float near_zero = fma(x, p, x);
  const float t = size > 4 ? 4 : size;  // NaN stays
  float h = fma(t, 0.0002810047590173781, -0.004373990930616856);
  h = fma(t, h, 0.03200097382068634);
  h = fma(t, h, -0.1498049944639206);
  h = fma(t, h, -0.9194157123565674);
  h = fma(t, h, -1.6267991065979004);
  h = fma(t, h, -0.0003048604412470013);
  const float k = rint(h), r = h - k;
  float q = fma(r, 0.001326472731307149, 0.009671512991189957);
  q = fma(r, q, 0.05550733581185341);
  q = fma(r, q, 0.24022242426872253);
  q = fma(r, q, 0.6931470036506653);
  const float power = as_float(((int)k + 127) << 23);
  const float beyond = fma(-power, fma(r, q, 1.0), 1.0);
  return size < 0.93 ? near_zero : copysign(beyond, x);
}
#endif
