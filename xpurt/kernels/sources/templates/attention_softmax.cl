// Between two matrix products: turns scores into weights, and stores the logarithms of
// the sums. One sub-group per query.
$attributes
__kernel void $entry(__global T* out, __global C* sums, __global C* scores MASK,
                     const Layout layout) {
  LINE
  C most = LOWEST, sum = 0;
  EVERY({
    const C score = scores[base + j] + masked(batch, head, layout.first + query, j);
    scores[base + j] = score;
    most = fmax(most, score);
  })
  ACROSS(most, fmax(most, other))
  const C shift = most == LOWEST ? 0 : most;
  EVERY({
    const C weight = exp(scores[base + j] - shift);
    scores[base + j] = weight;
    sum += weight;
  })
  ACROSS(sum, sum + other)
  const C factor = sum == 0 ? 0 : 1 / sum;
  EVERY({ put(out, base + j, scores[base + j] * factor); })
  for (long j = count + lane; j < layout.keys; j += LANES) put(out, base + j, 0);
  if (lane == 0) sums[at] = sum == 0 ? HIGHEST : most + log(sum);
}
