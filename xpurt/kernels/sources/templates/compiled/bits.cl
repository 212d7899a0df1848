// The bits of 16-bit floats, whose values are computed in float.
static ushort bits_h(float x) {
  ushort bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return bits;
}

static float of_bits_h(ushort bits) { return vload_half(0, (const half*)&bits); }

static ushort bits_b(float x) { return bfloat16_of(x); }
static float of_bits_b(ushort bits) { return from_bfloat16(bits); }
static float rounded_h(float x) { return of_bits_h(bits_h(x)); }
static float rounded_b(float x) { return of_bits_b(bits_b(x)); }
