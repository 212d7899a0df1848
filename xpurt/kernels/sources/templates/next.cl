// The next number of the type of the stored result. 16-bit types are computed in float,
// where the last 16 bits of a bfloat16 are zero, and the last 13 of a float16.
#if STORED_BITS == 16
static float next_of(float a, float b) {
  if (a != a || b != b) return NAN;
  if (a == b) return b;
  if (a == 0) return copysign(LEAST, b);
  if (isinf(a)) return copysign(LARGEST, a);
  const bool grows = (a < b) == (a > 0);
  const float size = fabs(a);
  // Subnormal numbers all have the same distance.
  if (size < NORMAL || (size == NORMAL && !grows)) {
    return copysign(grows ? size + LEAST : size - LEAST, a);
  }
  return as_float(as_int(a) + (grows ? SPACING : -SPACING));
}
#else
#define next_of(a, b) nextafter(a, b)
#endif
