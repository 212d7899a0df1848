// Builds a kernel of OpenCL C by the driver, or from the binary of an earlier process.
#pragma once

#include <functional>
#include <string>

#include "device/device.h"

namespace xpurt {

struct KernelSource {
  std::string entry;  // name of the kernel in the source
  std::string source;
};

// Throws the exception of a failed build. Called with the GIL held.
using FailureCallback = std::function<void(
    const std::string& device, const KernelSource&, const std::string& log)>;
void set_failure_callback(FailureCallback failure);

// The storage of binaries between processes. The identity holds all that a binary
// depends on. `load` returns an empty string if there is no binary. Called with the GIL
// held.
using LoadCallback = std::function<std::string(const std::string& identity)>;
using StoreCallback =
    std::function<void(const std::string& identity, const std::string& binary)>;
void set_binary_callbacks(LoadCallback load, StoreCallback store);

// Builds the kernel of a source for a device. `exact_division`: the device has IEEE
// float division and sqrt, which PyTorch computes with.
sycl::kernel build_kernel(const PhysicalDevice& device, const KernelSource& source,
                          bool exact_division);

// The last build in this thread that a driver refused, and the number of refusals.
struct Refusal {
  size_t count = 0;
  const PhysicalDevice* device = nullptr;
  std::string entry;
  std::string log;
};
const Refusal& last_refusal() noexcept;

// Expected microseconds to get a kernel, estimated from the newest ones.
double expected_build_us() noexcept;

// The numbers of kernels made in this process, and of those loaded from a binary.
size_t built_kernels() noexcept;
size_t loaded_kernels() noexcept;

// Runs `body`, which may call Python, with the GIL held. The calling thread must not
// hold the GIL.
void call_python(const std::function<void()>& body);

}  // namespace xpurt
