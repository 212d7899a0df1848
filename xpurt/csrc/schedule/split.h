// One op on several devices at once: each computes some rows of the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <vector>

#include "memory/replica/device_override.h"
#include "program/program.h"
#include "schedule/policy.h"
#include "stream/earlier_errors.h"

namespace xpurt {

// Note [Splitting]
// ~~~~~~~~~~~~~~~~
// A row that can compute parts of its result gets its shards from split(). It runs once
// for each shard on narrowed operands, under OnShard. The shards are disjoint ranges of
// the result's bytes, and stay on the device that computed them (Note [Shards]): a
// chain of ops that are split alike copies nothing.
struct Shard {
  size_t position;  // of the device in the ordinal
  int64_t begin;    // rows
  int64_t end;

  int64_t rows() const { return end - begin; }
};
using ShardList = std::vector<Shard>;

// For tests: whether set_split_proportions() makes such an op split.
bool is_split_forced(const OpCost& cost, Stream& stream);

// Whether the current op is to be split, provided that its result has enough rows.
bool may_split(const OpCost& cost, Stream& stream, const RowRun& run);

// The shards of an op whose result has `rows` rows; empty if it is not to be split.
// Shards begin at multiples of `unit` rows. Records each device's fraction in the run.
ShardList split(const OpCost& cost, int64_t rows, int64_t unit, Stream& stream,
                RowRun& run);

// The same by the rows of these tensors. Empty, too, if there are no tensors, if their
// numbers of rows differ, or if the rows of one are not disjoint in memory.
ShardList split_rows(const OpCost& cost, at::ArrayRef<at::Tensor> tensors,
                     Stream& stream, RowRun& run);

// Records that a shard of the run begins on the device.
void record_shard(const PhysicalDevice& device, RowRun& run);

// Records that a shard of the run moves home since its device threw `error`. The call's
// times are then not recorded. A device that failed is excluded.
void record_moved_shard(const std::exception_ptr& error, RowRun& run);

// Note [Order of shards]
// ~~~~~~~~~~~~~~~~~~~~~~
// An op that threw may be run again as a whole, or by the native kernel. If the op is
// in place, its finished shards would then be computed twice. So the home device's
// shard comes first: if it throws, nothing was done. Another device may throw later, as
// it has no room, fails, or its kernel is still being built. Its shard is then computed
// at home, which waits for the build of the kernel.

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
    const uint64_t earlier = earlier_errors_thrown();
    try {
      run_at(shard.position, shard);
    } catch (...) {
      if (earlier_errors_thrown() != earlier) throw;
      record_moved_shard(std::current_exception(), run);
      const WaitsForBuilds all{BuildWaits{}};
      run_at(devices.home, shard);
    }
  }
}

// A view of the same memory, for xpurt's kernels.
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

// For tests: forces the proportions of work, by position. Splits all work that reads
// and writes at least `least_bytes`, with shards that begin at multiples of `unit` rows
// if `unit` is not 0. Empty proportions end it. Raises ValueError if a proportion is
// negative or not finite.
void set_split_proportions(std::vector<double> proportions, double least_bytes,
                           int64_t unit);

// The number of shards that ran on each device of an ordinal so far, by position.
std::vector<uint64_t> shards_run(c10::DeviceIndex index);

}  // namespace xpurt
