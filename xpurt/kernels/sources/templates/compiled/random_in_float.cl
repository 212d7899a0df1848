#define C_IS_DOUBLE 0
