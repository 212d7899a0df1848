#pragma OPENCL FP_CONTRACT ON

// Random numbers of compiled code: element i of an op whose call drew `seed`. Each has
// a block of its own, so that no element needs its neighbours.
static float compiled_uniform(long seed, long i) {
  return (words_of(seed, 0, i, 0).word[0] >> 8) * 0x1p-24f;
}

static float compiled_normal(long seed, long i) {
  return normals_of(words_of(seed, 0, i, 0)).value[0];
}

static long compiled_integer(long seed, long i, long low, long high) {
  const ulong drawn = wide_number_of(words_of(seed, 0, i, 0), 0);
  return low + (long)scaled_down(drawn, (ulong)(high - low));
}
