// Arguments of an OpenCL C kernel, and its submission to the current stream.
#pragma once

#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstring>

#include "memory/replica/replica.h"

namespace xpurt {

// An nd-range in OpenCL's order: dimension 0 varies fastest.
struct Range {
  std::array<size_t, 3> global{1, 1, 1};
  std::array<size_t, 3> local{1, 1, 1};  // divides global
};

// The largest power of two up to `group` that is a work-group's size on the device.
size_t work_group_of(const PhysicalDevice& device, size_t group);

// A range of at least `sizes` work-items, in work-groups of at most `group` work-items,
// and no more than the device has, that are as wide in dimension 0 as is useful. The
// kernel has to check for work-items beyond `sizes`.
Range cover(const PhysicalDevice& device, std::array<size_t, 3> sizes,
            size_t group = 256);

class Launch {
 public:
  // A launch on the device at `position` of the stream's ordinal.
  Launch(Stream& stream, size_t position);

  const PhysicalDevice& device() const { return device_; }

  void tensor(const at::TensorBase& tensor, Access access);

  template <typename T>
  void value(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kInline);
    Argument& argument = arguments_.emplace_back();
    argument.bytes = sizeof(T);
    std::memcpy(argument.here, &value, sizeof(T));
  }

  // Adds USM that the device can use and that needs no tracking of reads and writes.
  void pointer(void* usm) { arguments_.emplace_back().usm = usm; }

  // Adds a structure that is passed by value. It must live until submit().
  void structure(const void* data, size_t bytes);

  void submit(const sycl::kernel& kernel, const Range& range);

 private:
  static constexpr size_t kInline = 16;  // two doubles
  struct Argument {
    alignas(16) char here[kInline];
    const void* there = nullptr;
    size_t bytes = 0;
    void* usm = nullptr;
    int operand = -1;  // number of the operand; -1 if it is no tensor
  };
  Stream& stream_;
  size_t position_;
  const PhysicalDevice& device_;
  Operands operands_;
  c10::SmallVector<Argument, 12> arguments_;
};

// Adds the scalar to a launch, converted to `type`: the type of the computation.
void add_scalar(Launch& launch, const c10::Scalar& scalar, c10::ScalarType type);

}  // namespace xpurt
