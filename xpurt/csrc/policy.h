// What an op costs, and which device of an ordinal it runs on.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include <vector>

#include "row_run.h"
#include "scheduler.h"
#include "stream.h"

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

// The same for the scheduler; valid as long as `cost` is.
Work work_of(const OpCost& cost);

// Position in the stream's ordinal of the device that the op runs on, which the run
// notes for the report.
size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run);

}  // namespace xpurt
