// OpenCL C kernels, built once per device and then kept.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "program/program_build.h"

namespace xpurt {

// Properties of a device that a kernel's source may depend on.
struct DeviceTraits {
  int sub_group = 0;  // lanes of the sub-groups to use; 0 if there are none
  bool has_wide_sub_groups = false;  // of 64 lanes
  size_t max_work_group = 1;
  size_t local_memory = 0;  // bytes per work-group
  int vector_width = 1;     // floats that a work-item processes at a time
  int compute_units = 1;
  bool exact_division = false;  // correctly rounded float division and sqrt
};
const DeviceTraits& traits(const PhysicalDevice& device);

// Returns the source of the kernel that `key` names, for a device. Called with the GIL
// held. Throws what Python raises.
using SourceCallback =
    std::function<KernelSource(const std::string& key, const DeviceTraits&)>;
void set_source_callback(SourceCallback source);

// The built kernel for a key. The first call for a key and device gets the source and
// builds the kernel. Meanwhile, other threads that need a new kernel of that device
// wait. Within a WaitsForBuilds it may throw KernelIsBuilding instead.
const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key);

// Thrown if a kernel is being built in another thread.
struct KernelIsBuilding : std::exception {
  explicit KernelIsBuilding(const PhysicalDevice& where) : device(where) {}
  const char* what() const noexcept override { return "the kernel is being built"; }
  const PhysicalDevice& device;
};

// The builds that a thread waits for. All other builds are left to another thread.
struct BuildWaits {
  bool all = true;
  const PhysicalDevice* device = nullptr;  // if not all: only this device's, or none
};

// While one lives, this thread waits only for these builds.
class WaitsForBuilds {
 public:
  explicit WaitsForBuilds(BuildWaits waits);
  ~WaitsForBuilds();
  WaitsForBuilds(const WaitsForBuilds&) = delete;
  WaitsForBuilds& operator=(const WaitsForBuilds&) = delete;

 private:
  const BuildWaits before_;
};

// The number of builds that are left to the other thread and have not ended.
size_t builds_pending();

// Drops these builds, and waits for the one that is underway. Called before the process
// ends, without the GIL.
void stop_builds();

}  // namespace xpurt
