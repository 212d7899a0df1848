#include "scheduler.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <shared_mutex>

#include "replica.h"

namespace xpurt {
namespace {

struct OrdinalCosts {
  uint64_t epoch = 0;
  std::vector<DeviceCost> by_position;
};

std::shared_mutex costs_mutex;
std::array<OrdinalCosts, kMaxDevices> costs_by_ordinal;

thread_local std::string preference;
thread_local bool stay_home = false;

// No costs: an empty list.
std::vector<DeviceCost> costs_of(c10::DeviceIndex index) {
  std::shared_lock<std::shared_mutex> lock(costs_mutex);
  const OrdinalCosts& found = costs_by_ordinal[index];
  if (found.epoch != placement_epoch()) return {};
  return found.by_position;
}

std::string kind_of(const sycl::device& device) {
  if (device.is_cpu()) return "cpu";
  return device.is_gpu() ? "gpu" : "accelerator";
}

bool can_run(const Work& work, const PhysicalDevice& device) {
  return device.is_opencl && (device.has_fp64 || !work.needs_fp64) &&
         (device.has_fp16 || !work.needs_fp16);
}

bool stays_home(const Work& work) {
  auto kept = [](const c10::StorageImpl* storage) { return !may_leave_home(*storage); };
  return std::any_of(work.reads.begin(), work.reads.end(), kept) ||
         std::any_of(work.writes.begin(), work.writes.end(), kept);
}

double predicted(const Work& work, const Ordinal& devices, size_t position,
                 const std::vector<DeviceCost>& costs) {
  const DeviceCost& cost = costs[position];
  double us = cost.launch_us +
              std::max(work.bytes / cost.bytes_per_us, work.flops / cost.flops_per_us);
  for (const c10::StorageImpl* storage : work.reads) {
    if (is_valid_on(*storage, position)) continue;
    // Home has no link of its own: the copy is charged to the other end.
    size_t other = position;
    for (size_t p = 0; position == devices.home && p < costs.size(); ++p) {
      if (p != position && is_valid_on(*storage, p)) other = p;
    }
    us += costs[other].copy_launch_us +
          static_cast<double>(storage->nbytes()) / costs[other].copy_bytes_per_us;
  }
  return us;
}

}  // namespace

void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs) {
  const size_t devices = ordinal(index).devices.size();
  TORCH_CHECK_VALUE(costs.size() == devices, "xpu:", static_cast<int>(index), " has ",
                    devices, " devices, but costs of ", costs.size(), " were given");
  for (const DeviceCost& cost : costs) {
    TORCH_CHECK_VALUE(cost.launch_us >= 0 && cost.copy_launch_us >= 0 &&
                          cost.bytes_per_us > 0 && cost.flops_per_us > 0 &&
                          cost.copy_bytes_per_us > 0,
                      "times of a cost are not negative, and rates are positive");
  }
  std::unique_lock<std::shared_mutex> lock(costs_mutex);
  costs_by_ordinal[index] = {placement_epoch(), std::move(costs)};
}

double predicted_us(const Work& work, Stream& stream, size_t position) {
  const auto costs = costs_of(stream.id().device_index());
  if (costs.empty()) return std::numeric_limits<double>::quiet_NaN();
  return predicted(work, stream.ordinal(), position, costs);
}

size_t choose_position(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1 || stay_home) return devices.home;
  if (stays_home(work)) return devices.home;
  const auto costs = costs_of(stream.id().device_index());
  size_t best = devices.home;
  auto rank = [&](size_t position) {
    const PhysicalDevice& device = *devices.devices[position];
    const bool preferred = preference.empty() || kind_of(device.device) == preference;
    const double us = costs.empty() ? (position == devices.home ? 0.0 : 1.0)
                                    : predicted(work, devices, position, costs);
    return std::make_tuple(!can_run(work, device), !preferred, us);
  };
  auto best_rank = rank(best);
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if (position == devices.home) continue;
    const auto found = rank(position);
    if (found < best_rank) std::tie(best, best_rank) = std::tie(position, found);
  }
  return best;
}

StayHome::StayHome() : before_(std::exchange(stay_home, true)) {}
StayHome::~StayHome() {
  stay_home = before_;
}

bool must_stay_home() {
  return stay_home;
}

std::string set_preference(const std::string& kind) {
  TORCH_CHECK_VALUE(
      kind.empty() || kind == "cpu" || kind == "gpu" || kind == "accelerator",
      "a preference is \"cpu\", \"gpu\" or \"accelerator\"; found \"", kind, "\"");
  return std::exchange(preference, kind);
}

}  // namespace xpurt
