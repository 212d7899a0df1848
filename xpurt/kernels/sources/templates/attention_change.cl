// Between the matrix products of the backward: turns scores into weights, and gradients
// of weights into gradients of scores. One sub-group per query. What the gradients of a
// line are compared with is their mean under its weights: of the same numbers, so that
// the gradient of the score of a lone key is 0.
$attributes
__kernel void $entry(__global T* weights, __global T* changes, __global C* scores,
                     __global const C* grads, __global const C* sums MASK,
                     const Layout layout) {
  LINE
  const C shift = sums[at];
  C sum = 0, mean = 0;
  EVERY({
    const C score = scores[base + j] + masked(batch, head, layout.first + query, j);
    const C weight = exp(score - shift);
    scores[base + j] = weight;
    sum += weight;
    mean += weight * grads[base + j];
  })
  ACROSS(sum, sum + other)
  ACROSS(mean, mean + other)
  const C factor = sum == 0 ? 0 : 1 / sum;
  mean *= factor;
  EVERY({
    const C weight = scores[base + j] * factor;
    const C change = weight * (grads[base + j] - mean);
    put(weights, base + j, weight);
    put(changes, base + j, change);
  })
  for (long j = count + lane; j < layout.keys; j += LANES) {
    put(weights, base + j, 0);
    put(changes, base + j, 0);
  }
}
