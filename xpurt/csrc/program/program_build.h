// OpenCL C made a kernel by the driver, or its binary of an earlier process.
#pragma once

#include <functional>
#include <string>

#include "device/device.h"

namespace xpurt {

struct KernelSource {
  std::string entry;  // name of the kernel in the source
  std::string source;
};

// Turns a failed build into the exception that is thrown. Called with the GIL held.
using FailureCallback = std::function<void(
    const std::string& device, const KernelSource&, const std::string& log)>;
void set_failure_callback(FailureCallback failure);

// Where binaries are kept between processes, by an identity: all that a binary
// depends on. `load` gives an empty string for what it has not. Called with the GIL
// held.
using LoadCallback = std::function<std::string(const std::string& identity)>;
using StoreCallback =
    std::function<void(const std::string& identity, const std::string& binary)>;
void set_binary_callbacks(LoadCallback load, StoreCallback store);

// Makes the kernel of a source for a device. `exact_division`: the device has float
// division and sqrt as IEEE has them, which is what PyTorch computes.
sycl::kernel build_kernel(const PhysicalDevice& device, const KernelSource& source,
                          bool exact_division);

// The build that a driver refused last, in this thread, and how many it refused.
struct Refusal {
  size_t count = 0;
  const PhysicalDevice* device = nullptr;
  std::string entry;
  std::string log;
};
const Refusal& last_refusal() noexcept;

// Microseconds that getting a kernel is expected to take, after the newest ones.
double expected_build_us() noexcept;

// How many kernels were made in this process, and how many of them by a binary.
size_t built_kernels() noexcept;
size_t loaded_kernels() noexcept;

// Runs `body`, which may call Python, under the GIL, in a thread that does not hold it.
void call_python(const std::function<void()>& body);

}  // namespace xpurt
