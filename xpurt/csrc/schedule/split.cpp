#include "schedule/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "device/device_counts.h"
#include "device/device_failure.h"
#include "host/mutex.h"
#include "memory/replica/replica.h"
#include "schedule/candidates.h"
#include "schedule/decision.h"
#include "schedule/planning/division.h"

namespace xpurt {
namespace {

struct Forced {
  SharedMutex mutex{Rank::forced_split};
  std::vector<double> proportions;
  double least_bytes = 0;
  std::atomic<int64_t> unit{0};
};
Forced& forced() {
  static auto* const leaked = new Forced;
  return *leaked;
}
std::atomic<bool> is_forced{false};

std::vector<double> forced_proportions(const OpCost& cost, Stream& stream) {
  std::shared_lock<SharedMutex> lock(forced().mutex);
  const std::vector<double>& proportions = forced().proportions;
  if (static_cast<double>(cost.bytes) < forced().least_bytes) return {};
  return proportions.size() == stream.ordinal().devices.size() ? proportions
                                                               : std::vector<double>{};
}

// The proportions by position; empty if the work is not to be split. Their sum need not
// be 1.
std::vector<double> proportions_for(const OpCost& cost, Stream& stream,
                                    const RowRun& run) {
  if (is_forced.load(std::memory_order_relaxed))
    return forced_proportions(cost, stream);
  return run.decision != nullptr ? run.decision->proportions : std::vector<double>{};
}

}  // namespace

void set_split_proportions(std::vector<double> proportions, double least_bytes,
                           int64_t unit) {
  const auto sound = [](double proportion) {
    return proportion >= 0 && std::isfinite(proportion);
  };
  TORCH_CHECK_VALUE(std::ranges::all_of(proportions, sound),
                    "the proportions of a split are finite and not negative");
  std::unique_lock<SharedMutex> lock(forced().mutex);
  is_forced = !proportions.empty();
  forced().proportions = std::move(proportions);
  forced().least_bytes = least_bytes;
  forced().unit = unit;
}

ShardList split(const OpCost& cost, int64_t rows, int64_t unit, Stream& stream,
                RowRun& run) {
  const auto& devices = stream.ordinal().devices;
  if (const int64_t wanted = forced().unit.load(); wanted > 0) unit = wanted;
  if (devices.size() == 1 || rows < 2 * unit || is_on_shard() ||
      !stream.orders_by_data() || is_home_only()) {
    return {};
  }
  std::vector<double> proportions = proportions_for(cost, stream, run);
  if (proportions.empty()) return {};
  const Work work = work_of(cost, stream.ordinal());
  if (must_run_at_home(work)) return {};
  for (size_t p = 0; p < proportions.size(); ++p) {
    if (!can_run(work, *devices[p])) proportions[p] = 0;
  }
  const double sum = std::accumulate(proportions.begin(), proportions.end(), 0.0);
  if (sum <= 0) return {};
  for (double& proportion : proportions) proportion /= sum;
  ShardList shards;
  const std::vector<int64_t> units = units_for(proportions, rows / unit);
  int64_t begin = 0;
  for (size_t p = 0; p < proportions.size(); ++p) {
    const int64_t end = begin + units[p] * unit;
    if (end > begin) shards.push_back({p, begin, end});
    begin = end;
  }
  if (shards.size() < 2) return {};
  shards.back().end = rows;
  run.fractions.assign(proportions.size(), 0.0);
  for (const Shard& shard : shards) {
    run.fractions[shard.position] =
        static_cast<double>(shard.rows()) / static_cast<double>(rows);
  }
  return shards;
}

ShardList split_rows(const OpCost& cost, at::ArrayRef<at::Tensor> tensors,
                     Stream& stream, RowRun& run) {
  if (tensors.empty() || !may_split(cost, stream, run)) return {};
  const int64_t rows = rows_in(tensors[0]);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() == 0 || tensor.size(0) != rows || !has_disjoint_rows(tensor)) {
      return {};
    }
  }
  return split(cost, rows, 1, stream, run);
}

bool is_split_forced(const OpCost& cost, Stream& stream) {
  return is_forced.load(std::memory_order_relaxed) && may_split(cost, stream, RowRun());
}

bool may_split(const OpCost& cost, Stream& stream, const RowRun& run) {
  return !is_on_shard() && !is_home_only() &&
         !proportions_for(cost, stream, run).empty();
}

at::Tensor view_of(const at::TensorBase& tensor, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides, int64_t offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor.storage()), tensor.key_set(),
      tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

at::Tensor rows_of(const at::TensorBase& tensor, const Shard& shard, int64_t dim) {
  c10::SmallVector<int64_t, 6> sizes(tensor.sizes().begin(), tensor.sizes().end());
  sizes[dim] = shard.rows();
  return view_of(tensor, sizes, tensor.strides(),
                 tensor.storage_offset() + shard.begin * tensor.stride(dim));
}

bool is_disjoint_along(c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t dim) {
  int64_t last = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
    if (d != dim) last += (sizes[d] - 1) * strides[d];
  }
  return last < strides[dim];
}

std::vector<uint64_t> shards_run(c10::DeviceIndex index) {
  std::vector<uint64_t> result;
  for (const PhysicalDevice* device : ordinal(index).devices) {
    result.push_back(device_count_of(device->id).shards);
  }
  return result;
}

void record_shard(const PhysicalDevice& device, RowRun& run) {
  run.device_id = device.id;
  count_shard(device.id);
}

void record_moved_shard(const std::exception_ptr& error, RowRun& run) {
  run.shard_moved = true;
  // The device is free again, or still is: its clock has no such work. record_shard()
  // has set the device before the shard began.
  Stream& stream = current_stream();
  const auto& devices = stream.ordinal().devices;
  for (size_t position = 0; run.decision != nullptr && position < devices.size();
       ++position) {
    if (devices[position]->id != run.device_id) continue;
    take_back_shard(*run.decision, stream, position);
  }
  try {
    std::rethrow_exception(error);
  } catch (const DeviceFailure& failure) {
    take_out(failure);
  } catch (...) {
  }
}

}  // namespace xpurt
