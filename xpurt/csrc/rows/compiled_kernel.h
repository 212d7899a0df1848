// Kernels of torch.compile's sycl form: OpenCL C that Python generated, with tensors
// and numbers as arguments.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <atomic>
#include <string>

#include "device/device_counts.h"
#include "program/program.h"
#include "rows/launch.h"

namespace xpurt {

// What the launches of one kernel have in common.
struct CompiledKernelSpec {
  std::string key;  // under which Python returns the source: see program/program.h
  // A letter per argument. Tensors: 'r' read, 'w' wholly overwritten, 'u' read and
  // written. Numbers: 'i' int64, 'd' double, 'f' float.
  std::string arguments;
  std::array<size_t, 3> group;  // work-items of a work-group; dimension 0 first
  bool lanes = false;   // a sub-group, not a work-item, per element of dimension 0
  bool faults = false;  // its last argument is a fault word
  double flops = 1;     // per element of the range
  // Position of the device that a plan of the graph has for it; -1: it has none.
  int planned = -1;
};

// One argument of a call. `tensor` is null for a number.
struct CompiledKernelArgument {
  const at::TensorBase* tensor = nullptr;
  int64_t integer = 0;
  double real = 0;
};

class CompiledKernel {
 public:
  using Arguments = c10::ArrayRef<CompiledKernelArgument>;

  explicit CompiledKernel(CompiledKernelSpec spec) : spec_(std::move(spec)) {}

  const CompiledKernelSpec& spec() const { return spec_; }

  // Submits the kernel to the current stream of the tensors' device, over at least
  // `sizes` elements. Throws if the arguments are not those of the specification. A
  // device that fails is excluded, and the kernel runs at home.
  // Called without the GIL.
  void launch(Arguments arguments, std::array<size_t, 3> sizes);

  // Builds the kernel for the home device of an ordinal, and throws what the build
  // throws. Called without the GIL.
  void build(c10::DeviceIndex index);

 private:
  const sycl::kernel& built_for(const PhysicalDevice& device);
  const sycl::kernel& built_near(const Ordinal& on, size_t& position);
  void launch_at(size_t& position, Stream& stream, Arguments arguments,
                 std::array<size_t, 3> sizes);
  size_t choose_position(Arguments arguments, Stream& stream, int64_t elements) const;
  std::string reason(size_t position, const Ordinal& devices) const;
  c10::DeviceIndex index_of(Arguments arguments) const;

  const CompiledKernelSpec spec_;
  // By the device's id; devices without a place here find their kernel anew.
  std::array<std::atomic<const sycl::kernel*>, kCountedDevices> built_{};
  // Whether another device than the home one refused the kernel.
  std::atomic<bool> at_home_{false};
};

}  // namespace xpurt
