// Elements of a weight by which a write is told that autograd does not count.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace xpurt {

// Note [Samples of weights]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A comparison of all elements reads four bytes of each in every block, where a product
// in bfloat16 reads two. So of a larger weight some elements are compared: one out of
// each of 1024 ranges of equal length, at a place that is random within its range. Such
// places are aligned with no dimension. A write that changes a part p of the elements,
// wherever they are, stays unseen with a probability below (1 - p) ** 1024: 3% if 1 in
// 300 changes. A write to the whole of a range is always seen.
//
// Rejected: a constant step, which is aligned with a dimension of most weights (a step
// of 288 sees [o, 0, 0, 0] of a weight of (64, 32, 3, 3)); a checksum of all elements,
// for its time; storages that are copied on write, which give the parameter another
// address.

// The elements as they were when the sample was made.
class WeightSample {
 public:
  explicit WeightSample(const at::Tensor& weight);

  // Of a weight with the same place in its memory.
  bool is_of(const at::Tensor& weight) const;

 private:
  at::Tensor offsets_;  // from the first element, on the device of the weight
  at::Tensor seen_;
};

// The elements of `size` that are compared, by their number.
std::vector<int64_t> sampled_places(int64_t size);

}  // namespace xpurt
