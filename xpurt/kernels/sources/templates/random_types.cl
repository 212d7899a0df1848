// The definitions that random.cl needs, for kernels.
#define FUNCTION static
#define NUM(x) x
#define TWICE C_IS_DOUBLE
#if TWICE
#define REAL double
#define AS_REAL(bits) as_double(bits)
#define AS_BITS(real) as_ulong(real)
#else
#define REAL float
#define AS_REAL(bits) as_float(bits)
#define AS_BITS(real) as_uint(real)
#endif
