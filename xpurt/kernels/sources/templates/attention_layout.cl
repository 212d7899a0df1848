// Definitions of all attention kernels. Queries, keys and values are (batch, heads,
// tokens, EMBED), with any strides.
typedef struct {
  long batch, heads, queries, keys;
  long first;  // the number of the first query
  long query[4], key[4], value[4], out[4], grad[4];  // strides
  long mask[4];
  long sums[3];  // strides of the logarithms of sums: batch, head, query
} Layout;

#if $masked
#define MASK , __global const $mask_type* mask
#define masked(batch, head, query, key) \
  mask_of(mask, (batch) * layout.mask[0] + (head) * layout.mask[1] + \
                    (query) * layout.mask[2] + (key) * layout.mask[3])
static C mask_of(__global const $mask_type* mask, long i) { return $mask_load; }
#else
#define MASK
#define masked(batch, head, query, key) 0
#endif

typedef $storage T;
static C get(__global const T* p, long i) { return $load; }
static void put(__global T* p, long i, C value) { $store; }
