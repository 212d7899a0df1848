// C is the type of the computation; floats narrower than float are widened to it.

// The bits of a bfloat16, rounded to nearest even. NaN stays NaN.
static ushort bfloat16_of(float value) {
  const uint bits = as_uint(value);
  if (value != value) return (ushort)0x7fc0;
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float from_bfloat16(ushort bits) { return as_float((uint)bits << 16); }
