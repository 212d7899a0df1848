// The sequences of different lengths in one tensor, and where dropout draws from.
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

// From positions at which sequences begin, and the last one's end; read on the host.
// `used_keys`, if it is defined, has the number of keys that take part. `paged`: keys
// are not packed, and `starts_k` may be undefined. Raises an error that names `op`.
struct Packing {
  at::Tensor starts_q, starts_k, used_keys;
  int64_t rows_q = 0, rows_k = 0;
  bool paged = false;
};
std::vector<Sequence> packed_sequences(const Packing& packing, const char* op);

// Where dropout of one call draws from, so that its backward can draw it again.
struct DropoutState {
  uint64_t seed = 0;
  uint64_t offset = 0;

  // The next state of the device's generator, for so many draws.
  static DropoutState take(c10::DeviceIndex index, int64_t draws, const char* op);
  at::Generator generator(c10::DeviceIndex index) const;
};

void check_dropout(double dropout, const char* op);

// For arguments that the op's backward is not given: its gradients would be wrong.
void check_no_gradient(std::initializer_list<at::Tensor> operands, bool given,
                       const char* op, const char* arguments);

}  // namespace xpurt
