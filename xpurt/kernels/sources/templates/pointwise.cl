// Each element of the result is computed from one element of each operand. Dimension 0
// varies fastest. The dimensions from the third on are folded into the third of the
// range. Index arithmetic is in 64 bits, and unit strides are literal: the vectorizer
// of a CPU device needs both.
typedef struct {
  long size[$dims];
  long stride[$tensors][$dims];
} Layout;

__kernel void $entry($params, const Layout layout) {
  const size_t x = get_global_id(0);
  const size_t columns = layout.size[0];
$outer
#if $by_group  // whole work-groups run without a guard per element
  if ((get_group_id(0) + 1) * get_local_size(0) <= columns) {
$body
    return;
  }
#endif
  if (x < columns) {
$body
  }
}
