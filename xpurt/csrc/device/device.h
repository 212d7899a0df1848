// The physical devices, and the placement that puts them behind xpu ordinals.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

#include "device/current_device.h"
#include "host/api.h"

namespace xpurt {

// The largest number of ordinals that this library supports.
constexpr c10::DeviceIndex kMaxDevices = 64;

// The largest number of ordinals that a mapping may have, fixed at import. It is the
// size of the autograd engine's table, which must not grow. See Note [Autograd's
// threads].
c10::DeviceIndex guard_device_count() noexcept;
void set_guard_device_count(c10::DeviceIndex count);

// For native handles and for kernels in OpenCL C.
inline constexpr auto kOpenCL = sycl::backend::opencl;

struct PhysicalDevice {
  sycl::device device;
  sycl::context context;  // see Note [Contexts]
  std::string name;
  int id = 0;  // position in the process's table of physical devices
  bool is_cpu = false;
  bool is_accelerator = false;   // SYCL may take it for a GPU
  bool host_accessible = false;  // the host can read and write its allocations
  bool system_usm = false;       // its kernels can use any host pointer
  bool has_fp64 = false;
  bool has_fp16 = false;
  bool is_opencl = false;     // can run kernels in OpenCL C
  uint64_t total_memory = 0;  // bytes

  const char* kind() const {
    return is_cpu ? "cpu" : is_accelerator ? "accelerator" : "gpu";
  }
};

struct Ordinal {
  std::vector<PhysicalDevice*> devices;
  size_t home = 0;         // position in `devices` of the device that holds home copies
  bool overflows = false;  // see Note [Overflow]

  PhysicalDevice& home_device() const { return *devices[home]; }
  // The device that runs what is not compared on several.
  PhysicalDevice& working_device() const {
    return overflows ? *devices.front() : home_device();
  }
  // Whether it is one CPU device, whose memory the host reads in place.
  bool is_host() const {
    return devices.size() == 1 && home_device().is_cpu && home_device().host_accessible;
  }
  // The same, and its kernels use any memory of the host.
  bool shares_memory_with_host() const { return is_host() && home_device().system_usm; }
};

struct Placement {
  std::string mapping;
  std::string remark;  // what an error about an ordinal that is not there adds
  uint64_t epoch = 0;  // grows with every placement of the process
  std::vector<Ordinal> ordinals;
};

// The installed placement. Without one, calls the resolver (under the GIL). Throws what
// the resolver throws, or c10::Error after a fork.
const Placement& placement();

// The installed placement, or nullptr. Never resolves, never throws.
const Placement* installed_placement() noexcept;

// The device with that id, or nullptr.
const PhysicalDevice* find_physical_device(int id) noexcept;

// Number of ordinals; 0 if no placement can be resolved. Never throws.
XPURT_API c10::DeviceIndex device_count() noexcept;

// The ordinal of that index; for -1, that of the current device. Throws MappingError
// unless xpu:index exists.
const Ordinal& ordinal(c10::DeviceIndex index);

using DevicePointer = uintptr_t;  // address of a sycl::device
void set_placement_resolver(std::function<void()> resolver);
void install_placement(const std::string& mapping,
                       const std::vector<std::vector<DevicePointer>>& ordinals,
                       const std::string& remark, bool overflows = false);
// Removes the placement, and returns true. If `in_use` returns true, the placement
// stays, and this returns false. `in_use` is called when no thread can begin to use the
// placement. See Note [Use and change].
bool uninstall_placement(const std::function<bool()>& in_use);
// Whether the placement with that epoch is installed.
bool is_installed(uint64_t epoch) noexcept;
// Changes with every placement that is installed or removed.
uint64_t placement_epoch() noexcept;

// True in a process that was forked after a device had been used.
bool in_bad_fork() noexcept;

// Sets the function that waits for all queued work at the end of the process, before
// the driver is torn down.
void before_driver_ends(void (*finish)());

// True once the process is exiting and all queued work has been waited for: from then
// on no code may call the driver.
bool is_exiting() noexcept;

}  // namespace xpurt
