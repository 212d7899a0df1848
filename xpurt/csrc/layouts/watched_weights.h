// Writes to weights that no version counts, as those through `weight.data`.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// From now on a pointer to write by, to the memory of the weight, is noticed, until the
// outermost block of this thread ends.
void watch_weight(const at::Tensor& weight);

// False if such a pointer was taken, or if it is not watched. Also false at times
// although nobody has written: kernels may read by such a pointer.
bool is_watched(const at::Tensor& weight);

void end_watches();

}  // namespace xpurt
