// c10's counts of a device's memory as the dict that PyTorch's functions return.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <pybind11/pybind11.h>

namespace xpurt {

inline pybind11::dict stats_dict(const c10::CachingAllocator::Stat& stat) {
  pybind11::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

inline pybind11::dict stats_dict(const c10::CachingAllocator::StatArray& stats) {
  using c10::CachingAllocator::StatType;
  const auto of = [&](StatType type) {
    return stats_dict(stats[static_cast<size_t>(type)]);
  };
  pybind11::dict result;
  result["all"] = of(StatType::AGGREGATE);
  result["small_pool"] = of(StatType::SMALL_POOL);
  result["large_pool"] = of(StatType::LARGE_POOL);
  return result;
}

inline pybind11::dict stats_dict(
    const c10::CachingDeviceAllocator::DeviceStats& stats) {
  pybind11::dict result;
  result["allocation"] = stats_dict(stats.allocation);
  result["segment"] = stats_dict(stats.segment);
  result["active"] = stats_dict(stats.active);
  result["inactive_split"] = stats_dict(stats.inactive_split);
  result["allocated_bytes"] = stats_dict(stats.allocated_bytes);
  result["reserved_bytes"] = stats_dict(stats.reserved_bytes);
  result["active_bytes"] = stats_dict(stats.active_bytes);
  result["inactive_split_bytes"] = stats_dict(stats.inactive_split_bytes);
  result["requested_bytes"] = stats_dict(stats.requested_bytes);
  return result;
}

}  // namespace xpurt
