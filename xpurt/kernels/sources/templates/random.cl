// Random numbers, in the common subset of OpenCL C and C++. The kernels and the host
// forms (csrc/random/forms.h) are compiled from this text, and give the same bits.
//
// Note [Random numbers]
// ~~~~~~~~~~~~~~~~~~~~~
// An op takes `seed` and `offset` from its generator, whose offset then grows by 4 (not
// at all if there are no elements). The numbers are words of Philox4x32-10, with the
// seed as the key and (offset, block, draw) as the counter. A block has four words,
// enough for n elements. Element i, in row-major order, takes its part of block i / n.
// So its number depends on seed, offset and i alone, and not on the device or the
// number of threads. A function that has to draw again takes draws 1, 2, ... of its
// block.
//
// The bits are the same everywhere, because the text uses only operations with one
// correct result: integer operations; conversions; sums, differences and products of
// REAL, without contraction; for doubles also quotients and roots, which OpenCL
// requires to be rounded correctly (for floats it does not). Functions are series. A
// device may flush subnormal results to zero, so they are avoided unless the parameters
// of the op require them.
//
// REAL is double if the op is computed in double (TWICE), else float. A number is 32
// random bits for a float and 64 for a double. NUM(x) is a literal of type REAL, and
// FUNCTION begins a function.

#pragma OPENCL FP_CONTRACT OFF

typedef struct {
  uint word[4];
} Words;

// Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
FUNCTION Words words_of(ulong seed, ulong offset, ulong block, uint draw) {
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
  uint c0 = (uint)offset, c1 = (uint)(offset >> 32);
  uint c2 = (uint)block, c3 = (uint)(block >> 32) ^ (draw << 16);
  for (int k = 0; k < 10; ++k) {
    const ulong product0 = (ulong)0xD2511F53u * c0;
    const ulong product1 = (ulong)0xCD9E8D57u * c2;
    c0 = (uint)(product1 >> 32) ^ c1 ^ key0;
    c1 = (uint)product1;
    c2 = (uint)(product0 >> 32) ^ c3 ^ key1;
    c3 = (uint)product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  Words words;
  words.word[0] = c0;
  words.word[1] = c1;
  words.word[2] = c2;
  words.word[3] = c3;
  return words;
}

FUNCTION ulong wide_number_of(Words words, int k) {
  return (ulong)words.word[2 * k] << 32 | words.word[2 * k + 1];
}

#if TWICE
typedef ulong Number;
typedef long Signed;
typedef ulong Bits;
enum { NUMBERS = 2, NUMBER_BITS = 64, DIGITS = 53, BIAS = 1023, FRACTION_BITS = 54 };
FUNCTION Number number_of(Words words, int k) { return wide_number_of(words, k); }
#else
typedef uint Number;
typedef int Signed;
typedef uint Bits;
enum { NUMBERS = 4, NUMBER_BITS = 32, DIGITS = 24, BIAS = 127, FRACTION_BITS = 31 };
FUNCTION Number number_of(Words words, int k) { return words.word[k]; }
#endif

typedef struct {
  REAL value[NUMBERS];
} Reals;

FUNCTION REAL power_of_two(int exponent) {
  return AS_REAL((Bits)(exponent + BIAS) << (DIGITS - 1));
}

FUNCTION REAL infinite(void) { return AS_REAL((Bits)(2 * BIAS + 1) << (DIGITS - 1)); }

// The reciprocal of a positive float between 2^-125 and 2^125, within 2 units in the
// last place: three Newton steps from an estimate by the exponent.
FUNCTION REAL reciprocal_of(REAL x) {
#if TWICE
  return 1 / x;
#else
  REAL y = AS_REAL(0x7EF311C7u - AS_BITS(x));
  y = y * (2 - x * y);
  y = y * (2 - x * y);
  return y * (2 - x * y);
#endif
}

// The square root of a positive number, by the same method.
FUNCTION REAL root_of(REAL x) {
#if TWICE
  return sqrt(x);
#else
  const REAL half_of = NUM(0.5) * x;
  REAL y = AS_REAL(0x5F375A86u - (AS_BITS(x) >> 1));
  y = y * (NUM(1.5) - half_of * y * y);
  y = y * (NUM(1.5) - half_of * y * y);
  y = y * (NUM(1.5) - half_of * y * y);
  return x * y;
#endif
}

// log(2^exponent (1 + f)), with 1 + f between sqrt(1/2) and sqrt(2): twice the series
// of atanh(f / (2 + f)).
FUNCTION REAL log_of_parts(int exponent, REAL f) {
  const REAL s = f * reciprocal_of(2 + f);
  const REAL z = s * s;
#if TWICE
  REAL rest = z * (NUM(1.0) / 21);
  rest = z * (NUM(1.0) / 19 + rest);
  rest = z * (NUM(1.0) / 17 + rest);
  rest = z * (NUM(1.0) / 15 + rest);
  rest = z * (NUM(1.0) / 13 + rest);
  rest = z * (NUM(1.0) / 11 + rest);
  rest = z * (NUM(0.1111111111111111) + rest);
#else
  REAL rest = z * NUM(0.1111111111111111);
#endif
  rest = z * (NUM(0.14285714285714285) + rest);
  rest = z * (NUM(0.2) + rest);
  rest = z * (NUM(0.3333333333333333) + rest);
  // log(2) has two parts: a multiple of the first is exact.
  const REAL small = 2 * (s + s * rest) + exponent * NUM(1.4286068203094172e-6);
  return exponent * NUM(0.693145751953125) + small;
}

// -log(t / 2^FRACTION_BITS) for an odd number t made from `n`: positive and finite.
FUNCTION REAL minus_log_of(Number n) {
  const Number t = n >> (NUMBER_BITS - FRACTION_BITS) | 1;
  int exponent = (int)(AS_BITS((REAL)(Signed)t) >> (DIGITS - 1)) - BIAS;
  // The difference between t and a power of two is exact before it is rounded.
  REAL f = (REAL)(Signed)(t - ((Number)1 << exponent)) * power_of_two(-exponent);
  if (f > NUM(0.41421)) {
    ++exponent;
    f = (REAL)(Signed)(t - ((Number)1 << exponent)) * power_of_two(-exponent);
  }
  return -log_of_parts(exponent - FRACTION_BITS, f);
}

// exp(x), without subnormal results.
FUNCTION REAL exp_of(REAL x) {
#if TWICE
  if (x > NUM(709.78)) return infinite();
  if (x < NUM(-708.0)) return 0;
#else
  if (x > NUM(88.72)) return infinite();
  if (x < NUM(-87.0)) return 0;
#endif
  if (x != x) return x;
  const int k = (int)(x * NUM(1.4426950408889634) + (x < 0 ? NUM(-0.5) : NUM(0.5)));
  const REAL r = (x - k * NUM(0.693145751953125)) - k * NUM(1.4286068203094172e-6);
  REAL sum = 1;
#if TWICE
  for (int n = 13; n > 7; --n) sum = 1 + r * sum / n;
#endif
  sum = 1 + r * sum * NUM(0.14285714285714285);
  sum = 1 + r * sum * NUM(0.16666666666666666);
  sum = 1 + r * sum * NUM(0.2);
  sum = 1 + r * sum * NUM(0.25);
  sum = 1 + r * sum * NUM(0.3333333333333333);
  sum = 1 + r * sum * NUM(0.5);
  sum = 1 + r * sum;
  return sum * power_of_two(k / 2) * power_of_two(k - k / 2);
}

typedef struct {
  REAL cosine, sine;
} Direction;

// The direction of an angle; 2^NUMBER_BITS is a full turn.
FUNCTION Direction direction_of(Number turn) {
  const Number eighth = (Number)1 << (NUMBER_BITS - 3);
  const Number moved = turn + eighth;
  const int quarter = (int)(moved >> (NUMBER_BITS - 2));
  const Signed part = (Signed)(moved & (2 * eighth - 1)) - (Signed)eighth;
#if TWICE
  const REAL angle = (REAL)part * NUM(3.4061215800306616e-19);
#else
  const REAL angle = (REAL)part * NUM(1.4629180792671596e-9);
#endif
  const REAL z = angle * angle;
  REAL s = 1, c = 1;
#if TWICE
  s = 1 - z * s / 272;
  s = 1 - z * s / 210;
  s = 1 - z * s / 156;
  s = 1 - z * s / 110;
  c = 1 - z * c / 240;
  c = 1 - z * c / 182;
  c = 1 - z * c / 132;
  c = 1 - z * c / 90;
#endif
  s = 1 - z * s * NUM(0.013888888888888888);
  s = 1 - z * s * NUM(0.023809523809523808);
  s = 1 - z * s * NUM(0.05);
  s = angle * (1 - z * s * NUM(0.16666666666666666));
  c = 1 - z * c * NUM(0.017857142857142856);
  c = 1 - z * c * NUM(0.03333333333333333);
  c = 1 - z * c * NUM(0.08333333333333333);
  c = 1 - z * c * NUM(0.5);
  const REAL x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
  Direction found;
  found.cosine = quarter == 1 || quarter == 2 ? -x : x;
  found.sine = quarter >= 2 ? -y : y;
  return found;
}

// A number in [0, 1), a multiple of 2^-DIGITS.
FUNCTION REAL unit_of(Number n) {
  return (REAL)(Signed)(n >> (NUMBER_BITS - DIGITS)) * power_of_two(-DIGITS);
}

// A number in [from, to). `last` is the largest number of the result's type in it. That
// type has `digits` binary digits. The unit number is truncated to these, as it might
// round to 1.
FUNCTION REAL uniform_of(Number n, REAL from, REAL to, REAL last, int digits) {
  const Bits kept = ~(((Bits)1 << (DIGITS - digits)) - 1);
  const REAL value = from + AS_REAL(AS_BITS(unit_of(n)) & kept) * (to - from);
  return value > last ? from : value;
}

// Standard normal numbers: Box, Muller: "A Note on the Generation of Random Normal
// Deviates", 1958.
FUNCTION Reals normals_of(Words words) {
  Reals found;
  for (int k = 0; k < NUMBERS; k += 2) {
    const REAL radius = root_of(2 * minus_log_of(number_of(words, k)));
    const Direction direction = direction_of(number_of(words, k + 1));
    found.value[k] = radius * direction.cosine;
    found.value[k + 1] = radius * direction.sine;
  }
  return found;
}

FUNCTION REAL exponential_of(Number n, REAL scale, REAL least) {
  const REAL value = minus_log_of(n) * scale;
  return value < least ? least : value;
}

// The number of trials up to the first success; `scale` is -1 / log(1 - p).
FUNCTION long geometric_of(Number n, REAL scale) {
  const REAL most = power_of_two(62);
  const REAL value = minus_log_of(n) * scale;
  const long whole = (long)(value < most ? value : most);
  return whole + (value > (REAL)whole ? 1 : 0);
}

// The cotangent of an angle between 0 and half a turn.
FUNCTION REAL cauchy_of(Number n, REAL median, REAL sigma) {
  const Direction direction = direction_of(n >> 1 | 1);
  return median + sigma * (direction.cosine * reciprocal_of(direction.sine));
}

// The bound below which a random word is with probability p.
FUNCTION ulong threshold_of(REAL p) { return (ulong)(p * NUM(4294967296.0)); }

// The high half of the product: a number below `range`, or all 64 bits if `range` is 0.
// Lemire: "Fast Random Integer Generation in an Interval", 2019. With 64 bits no number
// has to be rejected.
FUNCTION ulong scaled_down(ulong n, ulong range) {
  if (range == 0) return n;
  if (range >> 32 == 0) {
    return ((n >> 32) * range + ((n & 0xFFFFFFFFu) * range >> 32)) >> 32;
  }
  const ulong low = (n & 0xFFFFFFFFu) * (range & 0xFFFFFFFFu);
  const ulong left = (n >> 32) * (range & 0xFFFFFFFFu) + (low >> 32);
  const ulong right = (n & 0xFFFFFFFFu) * (range >> 32) + (left & 0xFFFFFFFFu);
  return (n >> 32) * (range >> 32) + (left >> 32) + (right >> 32);
}
