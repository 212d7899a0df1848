// OpenCL C kernels, built once per device and kept.
#pragma once

#include <functional>
#include <string>

#include "device.h"

namespace xpurt {

// What a kernel's source may depend on, of the device it is built for.
struct DeviceTraits {
  int sub_group = 0;  // lanes of the sub-groups to use; 0 if there are none
  size_t max_work_group = 1;
  size_t local_memory = 0;      // bytes per work-group
  bool exact_division = false;  // has correctly rounded float division and sqrt
};
const DeviceTraits& traits(const PhysicalDevice& device);

struct KernelSource {
  std::string entry;  // name of the kernel in the source
  std::string source;
};

// Gives the source of the kernel that `key` names, for a device. Called with the
// GIL held; throws what Python throws.
using SourceCallback =
    std::function<KernelSource(const std::string& key, const DeviceTraits&)>;

// Turns a failed build into the exception that is thrown. Called with the GIL held.
using FailureCallback = std::function<void(
    const std::string& device, const KernelSource&, const std::string& log)>;
void set_source_callbacks(SourceCallback source, FailureCallback failure);

// The built kernel for a key. The first call for a key and device asks for its
// source and builds it, while other threads that want a new kernel wait.
const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key);

// Builds a source for a device; nothing is kept.
sycl::kernel build_kernel(const PhysicalDevice& device, const KernelSource& source);

// How many kernels have been built in this process.
size_t built_kernels() noexcept;

}  // namespace xpurt
