// OpenCL C kernels, built once per device and kept.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "program/program_build.h"

namespace xpurt {

// What a kernel's source may depend on, of the device it is built for.
struct DeviceTraits {
  int sub_group = 0;  // lanes of the sub-groups to use; 0 if there are none
  size_t max_work_group = 1;
  size_t local_memory = 0;  // bytes per work-group
  int vector_width = 1;     // floats that a work-item computes with at a time
  int compute_units = 1;
  bool exact_division = false;  // has correctly rounded float division and sqrt
};
const DeviceTraits& traits(const PhysicalDevice& device);

// Gives the source of the kernel that `key` names, for a device. Called with the
// GIL held; throws what Python throws.
using SourceCallback =
    std::function<KernelSource(const std::string& key, const DeviceTraits&)>;
void set_source_callback(SourceCallback source);

// The built kernel for a key. The first call for a key and device asks for its
// source and builds it, while other threads that want a new kernel there wait. In a
// WaitsForBuilds it may throw KernelIsBuilding instead.
const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key);

// Thrown where a kernel is being built in another thread.
struct KernelIsBuilding : std::exception {
  explicit KernelIsBuilding(const PhysicalDevice& where) : device(where) {}
  const char* what() const noexcept override { return "the kernel is being built"; }
  const PhysicalDevice& device;
};

// Whose builds a thread waits for; all others are left to another thread.
struct BuildWaits {
  bool all = true;
  const PhysicalDevice* device = nullptr;  // else this one's alone, or nobody's
};

// While one lives, this thread waits for these.
class WaitsForBuilds {
 public:
  explicit WaitsForBuilds(BuildWaits waits);
  ~WaitsForBuilds();
  WaitsForBuilds(const WaitsForBuilds&) = delete;
  WaitsForBuilds& operator=(const WaitsForBuilds&) = delete;

 private:
  const BuildWaits before_;
};

// Builds that are left to the other thread and have not ended.
size_t builds_pending();

// Drops them, and waits for the one that is under way: before the process ends. Called
// without the GIL.
void stop_builds();

}  // namespace xpurt
