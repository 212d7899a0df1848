// Writes to weights that no version counts, as those through `weight.data`.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// From now on a pointer to write by, to the storage of the weight, is noticed, until
// the outermost block of this thread ends. Returns the number of the watch: another
// weight of the same storage may begin a new one. 0 if the storage can't be watched.
uint64_t watch_weight(const at::Tensor& weight);

// False if such a pointer was taken since that watch began. Also false at times
// although nobody has written: kernels may read by such a pointer.
bool is_unwritten(const at::Tensor& weight, uint64_t watch);

void end_watches();

}  // namespace xpurt
