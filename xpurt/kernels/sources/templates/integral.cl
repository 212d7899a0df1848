static C maximum_of(C a, C b) { return a > b ? a : b; }
static C minimum_of(C a, C b) { return a < b ? a : b; }

// Functions of integers. The result of a division by zero is 0 here, as no device may
// trap. The smallest number divided by -1 is itself, as in two's complement.
#define ONE ((C)1)

static C times(C a, C b) { return (C)(a * b); }

// An unsigned type has no -1: its largest number is another value.
#define SIGNED ((C)-1 < 0)
#define IS_MINUS_ONE(b) (SIGNED && (b) == (C)-1)

static C trunc_quotient(C a, C b) {
  return b == 0 ? (C)0 : IS_MINUS_ONE(b) ? (C)(0 - a) : (C)(a / b);
}

static C trunc_rest(C a, C b) { return b == 0 || IS_MINUS_ONE(b) ? (C)0 : (C)(a % b); }

static C remainder_of(C a, C b) {
  const C rest = trunc_rest(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? (C)(rest + b) : rest;
}

static C floor_quotient(C a, C b) {
  const C quotient = trunc_quotient(a, b);
  return trunc_rest(a, b) != 0 && (a < 0) != (b < 0) ? (C)(quotient - 1) : quotient;
}

#define BITS ((C)(8 * sizeof(C)))

static C shift_left(C a, C b) { return b < 0 || b >= BITS ? (C)0 : (C)((ulong)a << b); }

static C shift_right(C a, C b) {
  const C most = SIGNED ? BITS - 1 : BITS;
  return b < 0 || b >= most ? (SIGNED ? (C)(a >> (BITS - 1)) : (C)0) : (C)(a >> b);
}

// The smallest number, which has no absolute value, stays itself, as in PyTorch.
static C gcd_of(C a, C b) {
  if (a < 0) a = (C)(0 - (ulong)a);
  if (b < 0) b = (C)(0 - (ulong)b);
  while (a != 0) {
    const C rest = trunc_rest(b, a);
    b = a;
    a = rest;
  }
  return b;
}

static C lcm_of(C a, C b) {
  const C divisor = gcd_of(a, b);
  if (divisor == 0) return 0;
  // Narrow types are computed in int, and truncated after the sign is removed, as in
  // PyTorch.
  const C quotient = trunc_quotient(a, divisor);
  return (C)(quotient * b < 0 ? -(quotient * b) : quotient * b);
}
