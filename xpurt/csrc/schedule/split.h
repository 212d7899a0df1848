// One op on several devices at once: each computes some rows of the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <vector>

#include "memory/replica/device_override.h"
#include "program/program.h"
#include "schedule/policy.h"

namespace xpurt {

// Note [Splitting]
// ~~~~~~~~~~~~~~~~
// A row that can compute parts of its result asks split() for the parts, and runs
// itself once for each on narrowed operands, under OnShard. The parts are disjoint
// ranges of the result's bytes, and stay where they were computed (Note [Shards]): a
// chain of ops that are split alike moves nothing.
struct Shard {
  size_t position;  // of the device in the ordinal
  int64_t begin;    // rows
  int64_t end;

  int64_t rows() const { return end - begin; }
};
using ShardList = std::vector<Shard>;

// For tests: whether set_split_proportions() wants such an op split.
bool is_split_forced(const OpCost& cost, Stream& stream);

// Whether the current op is to be split, if its result has rows enough.
bool may_split(const OpCost& cost, Stream& stream, const RowRun& run);

// The shards of an op whose result has so many rows; empty if it is not to be split.
// Shards begin at multiples of `unit` rows. The run keeps who does how much.
ShardList split(const OpCost& cost, int64_t rows, int64_t unit, Stream& stream,
                RowRun& run);

// The same by rows of these tensors; empty as well if one has others, or none that are
// apart, or if there is none.
ShardList split_rows(const OpCost& cost, at::ArrayRef<at::Tensor> tensors,
                     Stream& stream, RowRun& run);

// A shard of the run begins on the device.
void record_shard(const PhysicalDevice& device, RowRun& run);

// A shard of it runs at home instead, since its device threw this: the call's times say
// nothing. A device that failed is taken out.
void record_moved_shard(const std::exception_ptr& error, RowRun& run);

// Note [Order of shards]
// ~~~~~~~~~~~~~~~~~~~~~~
// An op that threw may be run again as a whole, or by the native kernel; in place, what
// was done of it would then be done twice. So the home device's shard comes first: what
// it throws leaves the op undone. Whatever other devices throw after it (they have no
// room, fail, or their kernel is still being built), their shards are done at home,
// which waits for the kernel.

// Calls `compute` for each shard.
template <typename Compute>
void run_shards(const ShardList& shards, const Ordinal& devices, RowRun& run,
                const Compute& compute) {
  const auto run_at = [&](size_t position, Shard shard) {
    const OnShard scope(static_cast<int>(position));
    record_shard(*devices.devices[position], run);
    shard.position = position;
    compute(shard);
  };
  for (const Shard& shard : shards) {
    if (shard.position == devices.home) run_at(devices.home, shard);
  }
  for (const Shard& shard : shards) {
    if (shard.position == devices.home) continue;
    try {
      run_at(shard.position, shard);
    } catch (...) {
      record_moved_shard(std::current_exception(), run);
      const WaitsForBuilds all{BuildWaits{}};
      run_at(devices.home, shard);
    }
  }
}

// A view of the same memory, as kernels of ours want it.
at::Tensor view_of(const at::TensorBase& tensor, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides, int64_t offset);

// Rows of the tensor along a dimension.
at::Tensor rows_of(const at::TensorBase& tensor, const Shard& shard, int64_t dim = 0);

inline int64_t rows_in(const at::TensorBase& tensor) {
  return tensor.dim() == 0 ? 0 : tensor.size(0);
}

// Whether rows along that dimension are disjoint ranges of memory.
bool is_disjoint_along(c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t dim);
inline bool has_disjoint_rows(const at::TensorBase& tensor, int64_t dim = 0) {
  return is_disjoint_along(tensor.sizes(), tensor.strides(), dim);
}

// For tests: what of its work each device is to do, by position. Splits all work that
// reads and writes at least so many bytes, with shards that begin at multiples of
// `unit`, if it is not 0. No proportions take it back.
void set_split_proportions(std::vector<double> proportions, double least_bytes,
                           int64_t unit);

// How many shards ran on each device of an ordinal so far.
std::vector<uint64_t> shards_run(c10::DeviceIndex index);

}  // namespace xpurt
