// Where an op runs, and whether a device kernel is worth its launch.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/SmallVector.h>

#include "stream.h"

namespace xpurt {

enum class OpClass {
  pointwise,
  reduction,
  softmax,
  matmul,
  steps,
  convolution,
  attention,
  draws
};

// What a row tells of one call, so that its cost can be guessed.
struct OpCost {
  OpClass op_class = OpClass::pointwise;
  int64_t elements = 0;  // that are computed (products of any kind: multiply-adds)
  double flops = 1;      // per element
  int64_t bytes = 0;     // read and written
  bool needs_fp64 = false;
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

// Position in the stream's ordinal of the device that the op runs on, and note of
// it for the report.
size_t choose_device(const OpCost& cost, Stream& stream);

// Whether a kernel on one of the stream's devices is expected to finish before the
// native kernel on the host does.
bool kernel_wins(Stream& stream, const OpCost& cost);

// The elements (see OpCost) from which on that is so where a CPU is the only device.
int64_t crossover(OpClass op_class, double flops);

}  // namespace xpurt
