// The last part of running a row that several devices may compute: each device computes
// some rows of the result.
#pragma once

#include <ATen/core/stack.h>

#include <utility>

#include "schedule/row_run.h"
#include "schedule/split.h"

namespace xpurt {

// The shards of an op whose result has `rows` rows that can be computed separately. 0
// rows: no shards.
inline ShardList shards_by_row(const OpCost& cost, int64_t rows, Stream& stream,
                               RowRun& run) {
  if (rows == 0 || !may_split(cost, stream, run)) return {};
  return split(cost, rows, 1, stream, run);
}

// Calls `part(shard)` for each shard; without shards, `whole(position)` for the device
// that is chosen for the op.
template <typename Whole, typename Part>
void run_whole_or_split(const ShardList& shards, const OpCost& cost, Stream& stream,
                        RowRun& run, const Whole& whole, const Part& part) {
  if (shards.empty()) {
    whole(choose_device(cost, stream, run));
  } else {
    run_shards(shards, stream.ordinal(), run, part);
  }
}

// Replaces the arguments of an op by its result.
inline void give_result(torch::jit::Stack* stack, size_t arguments, at::Tensor result) {
  torch::jit::drop(*stack, arguments);
  torch::jit::push(*stack, std::move(result));
}

}  // namespace xpurt
