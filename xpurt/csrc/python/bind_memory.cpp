// Memory of xpu devices for torch.xpu.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "device/device.h"
#include "host/gil.h"
#include "memory/allocator.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

py::dict to_dict(const Stat& stat) {
  py::dict result;
  result["current"] = stat.current;
  result["peak"] = stat.peak;
  result["allocated"] = stat.allocated;
  result["freed"] = stat.freed;
  return result;
}

py::dict to_dict(const StatArray& stats) {
  const auto of = [&](StatType type) {
    return to_dict(stats[static_cast<size_t>(type)]);
  };
  py::dict result;
  result["all"] = of(StatType::AGGREGATE);
  result["small_pool"] = of(StatType::SMALL_POOL);
  result["large_pool"] = of(StatType::LARGE_POOL);
  return result;
}

c10::DeviceIndex checked(c10::DeviceIndex index) {
  ordinal(index);
  return index < 0 ? current_device() : index;
}

py::dict memory_stats(c10::DeviceIndex index) {
  const auto stats = device_allocator().getDeviceStats(checked(index));
  py::dict result;
  result["allocation"] = to_dict(stats.allocation);
  result["segment"] = to_dict(stats.segment);
  result["active"] = to_dict(stats.active);
  result["inactive_split"] = to_dict(stats.inactive_split);
  result["allocated_bytes"] = to_dict(stats.allocated_bytes);
  result["reserved_bytes"] = to_dict(stats.reserved_bytes);
  result["active_bytes"] = to_dict(stats.active_bytes);
  result["inactive_split_bytes"] = to_dict(stats.inactive_split_bytes);
  result["requested_bytes"] = to_dict(stats.requested_bytes);
  return result;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("memory_stats", &memory_stats);
  m.def("empty_cache", [] {
    const WithoutGil released;
    device_allocator().emptyCache({0, 0});
  });
  m.def("reset_peak_memory_stats", [](c10::DeviceIndex index) {
    device_allocator().resetPeakStats(checked(index));
  });
  m.def("reset_accumulated_memory_stats", [](c10::DeviceIndex index) {
    device_allocator().resetAccumulatedStats(checked(index));
  });
  m.def("memory_info", [](c10::DeviceIndex index) {
    return device_allocator().getMemoryInfo(checked(index));
  });
}

}  // namespace xpurt
