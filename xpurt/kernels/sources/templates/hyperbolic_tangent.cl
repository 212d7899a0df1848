// tanh of floats, without a branch. In vectors the driver's own takes 1.2 to 1.4 times
// as long. Within 1.5 units in the last place.
#if C_IS_DOUBLE
#define hyperbolic_tangent(x) tanh(x)
#else

// Below 0.55 a polynomial: tanh(x) = x + x^3 p(x^2). Beyond, 1 - 2 / (exp(2 |x|) + 1)
// with exp(2 |x|) = 2^k (1 + r + r^2 q(r)). Both have minimal largest relative error.
// From 10 on the result is 1. log(2) has two parts: a multiple of the first is exact.
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
#endif
