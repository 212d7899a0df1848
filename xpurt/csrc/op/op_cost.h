// What one call of an op costs, as far as its row can tell.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include <vector>

#include "device/device.h"

namespace xpurt {

// What a row tells of one call, so that its cost can be guessed.
struct OpCost {
  int64_t elements = 0;  // that are computed (matmul: multiply-adds)
  double flops = 1;      // per element
  int64_t bytes = 0;     // read and written
  int64_t rows = 0;      // of the result that can be computed apart; 0: none
  bool needs_fp64 = false;
  std::vector<double> launches;  // by position in the ordinal; none: one
  c10::SmallVector<const c10::StorageImpl*, 4> reads;
  c10::SmallVector<const c10::StorageImpl*, 2> writes;

  // Counts the tensor's bytes, storage and type.
  void read(const at::TensorBase& tensor);
  void write(const at::TensorBase& tensor);

 private:
  void add(const at::TensorBase& tensor);
};

// Whether some device of the ordinal has the types that the op needs.
bool can_run(const Ordinal& ordinal, const OpCost& cost);

}  // namespace xpurt
