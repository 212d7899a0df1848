#include "schedule/staying.h"

#include <algorithm>

namespace xpurt {
namespace {

double least_cost_elsewhere(const Candidates& candidates, const Ordinal& devices,
                            size_t position) {
  double least = Candidate::kNever;
  for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
    if (position_of(candidate, devices) == position) continue;
    least = std::min(least, candidates[candidate].cost_us);
  }
  return least;
}

// Of all operands, if none of them is there.
double copying_us(const Work& work, const DeviceCost& link) {
  double us = 0;
  for (const c10::StorageImpl* storage : work.reads) {
    us += link.copy_launch_us +
          static_cast<double>(storage->nbytes()) / link.copy_bytes_per_us;
  }
  return us;
}

}  // namespace

void record_saved(const Work& work, const Ordinal& devices,
                  const std::vector<DeviceCost>& costs, const Candidates& candidates) {
  if (!work.residency.is_short_of_memory() || work.reads.empty()) return;
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if (position == devices.home || !candidates[position].can_run()) continue;
    const double gain_us = least_cost_elsewhere(candidates, devices, position) -
                           candidates[position].cost_us;
    const double saved = gain_us / copying_us(work, costs[position]);
    record_saved(work.reads, position, std::clamp(saved, 0.0, 1.0));
  }
}

std::optional<size_t> position_to_copy_to(const Work& work, const Ordinal& devices,
                                          const Candidates& candidates, size_t chosen,
                                          StatisticsBucket& bucket) {
  if (!work.residency.is_short_of_memory()) return std::nullopt;
  const size_t there = position_of(chosen, devices);
  if (there != devices.home && candidates[chosen].moves_us <= 0) {
    bucket.staying.pay_off();
  }
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const Candidate& each = candidates[position];
    const bool may_stay = position != devices.home && position != there &&
                          each.is_possible() && each.moves_us > 0 &&
                          each.streams_us <= 0;
    if (!may_stay) continue;
    const double gain_us =
        candidates[chosen].finish_us() - (each.finish_us() - each.moves_us);
    if (gain_us > 0 && bucket.staying.add(gain_us, each.moves_us)) return position;
  }
  return std::nullopt;
}

}  // namespace xpurt
