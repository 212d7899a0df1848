typedef struct {
  $members
} Arguments;

static long wrapped(long dim, int rank) {
  return dim < 0 ? dim + max(rank, 1) : dim;
}

static long offset_at(int rank, const long* stride, const long* index) {
  long offset = 0;
  for (int d = 0; d < rank; ++d) offset += index[d] * stride[d];
  return offset;
}

// Computes the index of the i-th element, without the dimension `skipped`. Returns its
// offset.
static long unravel(int rank, const long* size, const long* stride, long i,
                    int skipped, long* index) {
  long offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = 0;
    if (d == skipped) continue;
    index[d] = i % size[d];
    i /= size[d];
    offset += index[d] * stride[d];
  }
  return offset;
}

// The same for fewer than 2^31 elements: 32-bit divisions are much faster.
static long unravel_int32(int rank, const long* size, const long* stride, uint i,
                        int skipped, long* index) {
  long offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = 0;
    if (d == skipped) continue;
    const uint whole = i / (uint)size[d];
    index[d] = i - whole * (uint)size[d];
    i = whole;
    offset += index[d] * stride[d];
  }
  return offset;
}

#define FAULT (*fault = (int)a.row)
#define FAULT_OF(number) (*fault = (int)(number))
$definitions
$functions

$attributes
__kernel void $entry($params) {
  const long i = $work_item;
  if (i >= a.work_items) return;
  $lane
$text
}
