// OpenCL C kernels, built once per device and kept.
#pragma once

#include <functional>
#include <string>

#include "program_build.h"

namespace xpurt {

// What a kernel's source may depend on, of the device it is built for.
struct DeviceTraits {
  int sub_group = 0;  // lanes of the sub-groups to use; 0 if there are none
  size_t max_work_group = 1;
  size_t local_memory = 0;      // bytes per work-group
  bool exact_division = false;  // has correctly rounded float division and sqrt
};
const DeviceTraits& traits(const PhysicalDevice& device);

// Gives the source of the kernel that `key` names, for a device. Called with the
// GIL held; throws what Python throws.
using SourceCallback =
    std::function<KernelSource(const std::string& key, const DeviceTraits&)>;
void set_source_callback(SourceCallback source);

// The built kernel for a key. The first call for a key and device asks for its
// source and builds it, while other threads that want a new kernel wait.
const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key);

}  // namespace xpurt
