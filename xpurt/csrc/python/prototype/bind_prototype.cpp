// Prototype devices for Python.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pybind11/stl.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "host/gil.h"
#include "prototype/prototype_calls.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"
#include "python/bind.h"
#include "python/prototype/derivative.h"
#include "python/queue_capsule.h"
#include "python/stats_dict.h"

namespace py = pybind11;

namespace xpurt {
namespace {

const PrototypeDevice& known(const std::string& type) {
  const PrototypeDevice* found = prototype_device(c10::Device(type).type());
  TORCH_CHECK_VALUE(found != nullptr, "there is no prototype of ", type,
                    ". Make one with xpurt.prototype_device(\"", type, "\").");
  return *found;
}

c10::DeviceAllocator& allocator_of(const std::string& type) {
  return *c10::getDeviceAllocator(known(type).type());
}

}  // namespace

void bind_prototype(py::module_& m) {
  m.def("make_prototype_device",
        [](const std::string& type, const std::string& behind, int count,
           const std::vector<uintptr_t>& sycl_devices) {
          std::vector<sycl::device> devices;
          for (const uintptr_t each : sycl_devices) {
            devices.push_back(*reinterpret_cast<const sycl::device*>(each));
          }
          // The device lives as long as the process.
          const auto* memory = devices.empty() ? nullptr : new SyclMemory(devices);
          make_prototype_device(c10::Device(type).type(), c10::Device(behind).type(),
                                static_cast<c10::DeviceIndex>(count), memory);
        });
  m.def("register_derivative", [](const std::string& op, const std::string& type,
                                  const py::function& function) {
    register_derivative(op, c10::Device(type).type(), function);
  });
  m.def("prototype_copies",
        [](const std::string& type) { return known(type).copies(); });
  m.def("prototype_queue", [](const c10::Stream& stream) {
    const PrototypeDevice* device = prototype_device(stream.device_type());
    TORCH_CHECK_VALUE(
        device != nullptr && device->sycl() != nullptr,
        "a stream of a prototype on a SYCL device has a queue; this one is "
        "on ",
        stream.device(),
        ". xpurt.prototype_device(name, memory=\"cpu\") makes such a "
        "device.");
    return capsule_of(device->sycl()->queue(stream.device_index(), stream.id()));
  });
  m.def("prototype_current", [](const std::string& type) {
    return static_cast<int>(known(type).current());
  });
  m.def("prototype_exchange", [](const std::string& type, int index) {
    const PrototypeDevice& device = known(type);
    if (index >= 0) device.own(static_cast<c10::DeviceIndex>(index));
    return static_cast<int>(device.exchange(static_cast<c10::DeviceIndex>(index)));
  });
  m.def("prototype_calls", [](const std::string& type) {
    py::list rows;
    for (const OpCallsRow& row : op_calls_report(known(type))) {
      rows.append(py::make_tuple(row.op, row.by == ComputedBy::vendor, row.calls,
                                 row.bytes_copied, row.seconds));
    }
    return rows;
  });
  m.def("count_vendor_kernels",
        [](const std::string& type) { count_vendor_kernels(known(type)); });
  m.def("reset_prototype_calls",
        [](const std::string& type) { reset_op_calls(known(type)); });
  m.def("prototypes", [] {
    std::vector<std::string> types;
    for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
      const auto type = static_cast<c10::DeviceType>(i);
      if (prototype_device(type) != nullptr) {
        types.push_back(c10::DeviceTypeName(type, /*lower_case=*/true));
      }
    }
    return types;
  });
  m.def("prototype_memory_stats", [](const std::string& type, int index) {
    const auto stats =
        allocator_of(type).getDeviceStats(static_cast<c10::DeviceIndex>(index));
    py::dict found = stats_dict(stats);
    found["num_device_alloc"] = stats.num_device_alloc;
    found["num_device_free"] = stats.num_device_free;
    return found;
  });
  m.def("reset_prototype_memory_stats",
        [](const std::string& type, int index, bool peaks) {
          c10::DeviceAllocator& allocator = allocator_of(type);
          const auto of = static_cast<c10::DeviceIndex>(index);
          peaks ? allocator.resetPeakStats(of) : allocator.resetAccumulatedStats(of);
        });
  m.def("prototype_memory_info", [](const std::string& type, int index) {
    return allocator_of(type).getMemoryInfo(static_cast<c10::DeviceIndex>(index));
  });
  m.def("empty_prototype_cache", [](const std::string& type) {
    const WithoutGil released;
    allocator_of(type).emptyCache();
  });
  m.def("prototype_dtypes", [](const std::string& type, int index) {
    const c10::Device own = known(type).own(static_cast<c10::DeviceIndex>(index));
    py::set found;
    c10::impl::getDeviceGuardImpl(own.type())
        ->getDeviceCapability(own)
        .forEachSupportedScalarType([&](c10::ScalarType each) {
          found.add(py::handle(reinterpret_cast<PyObject*>(torch::getTHPDtype(each))));
        });
    return found;
  });
  m.def("prototype_generator", [](const std::string& type, int index) {
    const c10::Device own = known(type).own(static_cast<c10::DeviceIndex>(index));
    return py::reinterpret_steal<py::object>(
        THPGenerator_Wrap(prototype_generator(own)));
  });
  m.def("prototype_stream", [](const std::string& type, int index) {
    const c10::Device own = known(type).own(static_cast<c10::DeviceIndex>(index));
    return c10::impl::getDeviceGuardImpl(own.type())->getStream(own);
  });
  m.def("prototype_exchange_stream", [](const c10::Stream& stream) {
    return c10::impl::getDeviceGuardImpl(stream.device_type())->exchangeStream(stream);
  });
}

}  // namespace xpurt
