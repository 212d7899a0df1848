// Sequences of different lengths in one tensor, and the state of dropout's generator.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <vector>

namespace xpurt {

// One sequence of a batch that is packed into one tensor: rows of queries and keys.
struct Sequence {
  int64_t query, queries, key, keys;
};

// The sequences of a packing. `starts_q` and `starts_k` have the positions at which the
// sequences begin, then the end of the last one; they are read on the host.
// `used_keys`, if defined, has the number of keys of each sequence that take part.
// `paged`: keys are not packed, and `starts_k` may be undefined. Invalid positions
// raise an error that names `op`.
struct Packing {
  at::Tensor starts_q, starts_k, used_keys;
  int64_t rows_q = 0, rows_k = 0;
  bool paged = false;
};
std::vector<Sequence> packed_sequences(const Packing& packing, const char* op);

// The generator state of one call's dropout, from which the backward pass draws the
// same numbers again.
struct DropoutState {
  uint64_t seed = 0;
  uint64_t offset = 0;

  // Takes the next state of the device's generator, for `draws` draws. Raises in a
  // capture.
  static DropoutState take(c10::DeviceIndex index, int64_t draws, const char* op);
  at::Generator generator(c10::DeviceIndex index) const;
};

// Raises unless it is a probability.
void check_dropout(double dropout, const char* op);

// Raises if an operand requires a gradient and `given`: the op's backward does not
// receive these arguments, so its gradients would be wrong.
void check_no_gradient(std::initializer_list<at::Tensor> operands, bool given,
                       const char* op, const char* arguments);

}  // namespace xpurt
