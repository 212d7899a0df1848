// Between the matrix products of the backward: turns scores into weights, and gradients
// of weights into gradients of scores. One sub-group per query.
$attributes
__kernel void $entry(__global T* weights, __global T* changes, __global const C* scores,
                     __global const C* grads, __global const C* sums,
                     __global const C* inner MASK, const Layout layout) {
  LINE
  const C sum = sums[at], dotted = inner[at];
  EVERY({
    const C score = scores[base + j] + masked(batch, head, layout.first + query, j);
    const C weight = exp(score - sum);
    const C change = weight * (grads[base + j] - dotted);
    put(weights, base + j, weight);
    put(changes, base + j, change);
  })
  for (long j = count + lane; j < layout.keys; j += LANES) {
    put(weights, base + j, 0);
    put(changes, base + j, 0);
  }
}
