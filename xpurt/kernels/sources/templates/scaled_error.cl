// exp(x^2) erfc(x). Multiplied by (1 + 2x) it is a smooth function of
// (x - 3.75) / (x + 3.75) on all of [0, inf) (Shepherd, Laframboise 1981). The
// Chebyshev coefficients were computed with 50 digits.
__constant const C erfcx_table[25] = {  // 13 for float
    1.17757893456740175, -0.00459005458064647733, -0.0842491333665179156,
    0.0592099399981918905, -0.0266586684353057523, 0.00907499767070526509,
    -0.00241316354041760819, 0.000490775836525808632, -0.0000691697330250120637,
    4.13902798607301017e-6, 7.74038306619849067e-7, -2.18864010492343957e-7,
    1.07649994656709104e-8, 4.5219598112182869e-9, -7.75440020883135111e-10,
    -6.31808834088668449e-11, 2.8687950109306699e-11, 1.94558685457773472e-13,
    -9.65469674843343891e-13, 3.25254814814873984e-14, 3.34781194828680539e-14,
    -1.8645628804193131e-15, -1.25079505306886471e-15, 7.41823525662404346e-17,
    5.06814890479611132e-17,
};

static C erfcx_of_positive(C x) {
  if (isinf(x)) return 0;
  // Divided by 2 and by 0.5 + x, as 1 + 2x would be infinite for the largest numbers.
  return SERIES(erfcx_table, (x - 3.75) / (x + 3.75), 13) / 2 / (0.5 + x);
}

static C erfcx_of(C x) {
  if (!(x < 0)) return erfcx_of_positive(x);
  // The rounding error of x^2 counts where x is large, and is corrected.
  const C square = x * x, lost = fma(x, x, -square);
  const C whole = exp(square);
  return isinf(whole) ? whole : 2 * (whole + whole * lost) - erfcx_of_positive(-x);
}

// The logarithm of the normal distribution function. The gradient is the exponential of
// a difference of this and x^2 / 2, so the square is rounded as PyTorch rounds it.
static C log_ndtr_of(C x) {
  const C scaled = x * 0.7071067811865476;
  if (x < -1) return log(erfcx_of(-scaled) / 2) - scaled * scaled;
  return log1p(-erfc(scaled) / 2);
}
