// log(|gamma(x)|) of floats, in double: near its zeros a float would have no correct
// digits. From 8 on by Stirling's series; below that after the recurrence; below 1/2 by
// the reflection formula (Abramowitz, Stegun 1964, 6.1.41, 6.1.15, 6.1.17).
#if C_IS_DOUBLE || !defined(cl_khr_fp64)
#define log_gamma(x) lgamma(x)
#else

// Constants, as literals would become floats.
#define OVER(n) ((double)1 / (n))

// |sin(pi x)|, by the Taylor series at the distance to the nearest integer.
static double sine_of_turns(double x) {
  const double angle = M_PI * fabs(x - rint(x)), z = -angle * angle;
  double sum = fma(z, OVER(272), 1);
  sum = fma(z * OVER(210), sum, 1);
  sum = fma(z * OVER(156), sum, 1);
  sum = fma(z * OVER(110), sum, 1);
  sum = fma(z * OVER(72), sum, 1);
  sum = fma(z * OVER(42), sum, 1);
  sum = fma(z * OVER(20), sum, 1);
  sum = fma(z * OVER(6), sum, 1);
  return angle * sum;
}

static float log_gamma(float x) {
  const bool reflected = 2 * x < 1;
  const double y = reflected ? 1 - (double)x : (double)x;
  double product = 1;
  for (int k = 0; k < 8; ++k) product *= y + k;
  const bool small = y < 8;
  const double w = small ? y + 8 : y;
  product = small ? product : 1;
  const double inverse = 1 / w, z = inverse * inverse;
  double series = fma(z, OVER(156), -691 * OVER(360360));
  series = fma(z, series, OVER(1188));
  series = fma(z, series, -OVER(1680));
  series = fma(z, series, OVER(1260));
  series = fma(z, series, -OVER(360));
  series = fma(z, series, OVER(12));
  const double half_log_of_2_pi = 0x1.d67f1c864beb5p-1;
  const double above =
      (w - OVER(2)) * log(w) - w + half_log_of_2_pi + inverse * series;
  const double rest = log(reflected ? M_PI * product / sine_of_turns(x) : product);
  const float found = (float)(reflected ? rest - above : above - rest);
  return x == 1 || x == 2 ? 0 : isinf(x) ? INFINITY : found;
}
#endif
