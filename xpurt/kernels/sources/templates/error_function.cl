// erf of floats, without a branch and without a division. In vectors the driver's own
// takes 1.6 times as long. Within 1.5 units in the last place.
#if C_IS_DOUBLE
#define error_function(x) erf(x)
#else

// Below 0.93 a polynomial: erf(x) = x + x p(x^2). Beyond, 1 - 2^h with a polynomial for
// h = log2(erfc(|x|)), and 2^h = 2^k (1 + r q(r)) with k the nearest integer. All three
// have minimal largest relative error of erf. From 4 on the result is 1.
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
