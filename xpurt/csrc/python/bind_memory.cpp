// Memory of xpu devices for torch.xpu.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "device/device.h"
#include "host/gil.h"
#include "memory/allocator.h"
#include "python/bind.h"
#include "python/stats_dict.h"

namespace py = pybind11;

namespace xpurt {
namespace {

c10::DeviceIndex checked(c10::DeviceIndex index) {
  ordinal(index);
  return index < 0 ? current_device() : index;
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("memory_stats", [](c10::DeviceIndex index) {
    return stats_dict(device_allocator().getDeviceStats(checked(index)));
  });
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
