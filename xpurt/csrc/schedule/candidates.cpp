#include "schedule/candidates.h"

#include <algorithm>

#include "device/device_failure.h"
#include "memory/replica/device_override.h"

namespace xpurt {
namespace {

std::string kind_of(const sycl::device& device) {
  if (device.is_cpu()) return "cpu";
  return device.is_gpu() ? "gpu" : "accelerator";
}

}  // namespace

bool can_run(const Work& work, const PhysicalDevice& device) {
  return device.is_opencl && (device.has_fp64 || !work.needs_fp64) &&
         (device.has_fp16 || !work.needs_fp16);
}

bool must_run_at_home(const Work& work) {
  return is_home_only() || !work.residency.may_leave();
}

double roofline_us(const Work& work, const DeviceCost& cost) {
  return cost.launch_us +
         std::max(work.bytes / cost.bytes_per_us, work.flops / cost.flops_per_us);
}

double roofline_us(const Work& work, const std::vector<DeviceCost>& costs,
                   size_t position) {
  const double others = work.launches.empty() ? 0 : work.launches[position] - 1;
  return roofline_us(work, costs[position]) + others * costs[position].launch_us;
}

double moves_us(const Work& work, const Ordinal& devices, size_t position,
                const std::vector<DeviceCost>& costs) {
  double us = 0;
  for (size_t read = 0; read < work.reads.size(); ++read) {
    const size_t missing = work.residency.bytes_missing(read, position);
    if (missing == 0) continue;
    // Costs of copies are kept for devices other than home. A copy to home is charged
    // at the rate of the device that holds the bytes.
    size_t other = position;
    for (size_t p = 0; position == devices.home && p < costs.size(); ++p) {
      if (p != position && work.residency.bytes_missing(read, p) == 0) other = p;
    }
    us += costs[other].copy_launch_us +
          static_cast<double>(missing) / costs[other].copy_bytes_per_us;
  }
  return us;
}

uint64_t positions_for(const Work& work, const Ordinal& devices) {
  const std::string kind = preference();
  uint64_t able = 0, preferred = 0;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const PhysicalDevice& device = *devices.devices[position];
    if (position != devices.home && is_excluded(device.id)) continue;
    if (!can_run(work, device)) continue;
    able |= uint64_t{1} << position;
    if (kind.empty() || kind_of(device.device) == kind) {
      preferred |= uint64_t{1} << position;
    }
  }
  if (able == 0) return uint64_t{1} << devices.home;
  return preferred != 0 ? preferred : able;
}

Candidate make_candidate(const Work& work, const Ordinal& devices, size_t position,
                         const std::vector<DeviceCost>& costs, const StreamClock* clock,
                         double now) {
  Candidate made;
  made.moves_us = moves_us(work, devices, position, costs);
  made.free_us = made.ready_us = now;
  if (clock != nullptr) {
    made.free_us = clock->backlog.free_us(position, now);
    for (const c10::StorageImpl* storage : work.reads) {
      made.ready_us =
          std::max(made.ready_us, clock->backlog.written_us(storage->data(), now));
    }
  }
  // Copies run in the same queue.
  if (made.moves_us > 0) made.ready_us = made.start_us() + made.moves_us;
  return made;
}

size_t earliest(const Candidates& candidates, size_t home) {
  size_t best = home;
  for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
    const Candidate& each = candidates[candidate];
    if (!each.is_possible()) continue;
    if (!candidates[best].is_possible() ||
        each.finish_us() < candidates[best].finish_us()) {
      best = candidate;
    }
  }
  return best;
}

size_t choose_by_costs(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1 || must_run_at_home(work)) return devices.home;
  const auto costs = device_costs(stream.id().device_index());
  const uint64_t positions = positions_for(work, devices);
  Candidates candidates;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const bool may = (positions >> position & 1) != 0;
    if (costs.empty()) {
      Candidate& made = candidates.emplace_back();
      if (may) made.cost_us = position == devices.home ? 0 : 1;
      continue;
    }
    candidates.push_back(make_candidate(work, devices, position, costs, nullptr, 0));
    if (may) candidates.back().cost_us = roofline_us(work, costs, position);
  }
  return earliest(candidates, devices.home);
}

}  // namespace xpurt
