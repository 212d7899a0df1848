// The cost of one call of an op, as far as its row determines it.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include <vector>

#include "device/device.h"

namespace xpurt {

// A row's data of one call, for a prediction of its cost.
struct OpCost {
  int64_t elements = 0;  // that are computed (matmul: multiply-adds)
  double flops = 1;      // per element
  int64_t bytes = 0;     // read and written
  int64_t rows = 0;      // of the result that can be computed separately; 0: none
  bool needs_fp64 = false;
  int64_t summed_bytes = 0;      // of a result of which each shard has a partial sum
  std::vector<double> launches;  // by position in the ordinal; empty: one each
  c10::SmallVector<const c10::StorageImpl*, 4> reads;
  c10::SmallVector<const c10::StorageImpl*, 2> writes;
  // A bit per element of `reads`: every shard of a divided call reads the whole
  // operand, as the second one of a product.
  uint64_t whole_reads = 0;

  // Adds the tensor's bytes, storage and type.
  void read(const at::TensorBase& tensor);
  // The same for an operand that every shard reads as a whole.
  void read_whole(const at::TensorBase& tensor);
  void write(const at::TensorBase& tensor);

 private:
  void add(const at::TensorBase& tensor);
};

// Whether a device of the ordinal computes in double.
bool has_fp64(const Ordinal& ordinal);

// Whether a device of the ordinal supports the types that the op needs.
bool can_run(const Ordinal& ordinal, const OpCost& cost);

}  // namespace xpurt
