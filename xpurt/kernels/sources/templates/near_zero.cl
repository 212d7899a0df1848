// exp(x) - 1 and log(1 + x) of floats, without a branch. In vectors, the drivers' own
// take several times as long. Both are within 1.5 units in the last place.
#if C_IS_DOUBLE
#define expm1_of(x) expm1(x)
#define log1p_of(x) log1p(x)
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
#endif
