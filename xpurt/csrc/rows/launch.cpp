#include "rows/launch.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>

#include "device/device_failure.h"
#include "program/program.h"
#include "schedule/decision.h"

namespace xpurt {

size_t work_group_of(const PhysicalDevice& device, size_t group) {
  return std::bit_floor(std::min(group, traits(device).max_work_group));
}

Range cover(const PhysicalDevice& device, std::array<size_t, 3> sizes, size_t group) {
  Range range;
  size_t left = work_group_of(device, group);
  for (int d = 0; d < 2; ++d) {
    range.local[d] = std::min(left, std::bit_ceil(std::max<size_t>(sizes[d], 1)));
    left /= range.local[d];
  }
  for (int d = 0; d < 3; ++d) {
    const size_t local = range.local[d];
    range.global[d] = (std::max<size_t>(sizes[d], 1) + local - 1) / local * local;
  }
  return range;
}

Launch::Launch(Stream& stream, size_t position)
    : stream_(stream),
      position_(position),
      device_(*stream_.ordinal().devices[position]),
      operands_(stream, position) {}

void Launch::tensor(const at::TensorBase& tensor, Access access) {
  Argument& argument = arguments_.emplace_back();
  argument.operand = static_cast<int>(operands_.add(tensor, access));
}

void Launch::structure(const void* data, size_t bytes) {
  Argument& argument = arguments_.emplace_back();
  argument.there = data;
  argument.bytes = bytes;
}

void Launch::submit(const sycl::kernel& kernel, const Range& range) {
  using sycl::ext::oneapi::experimental::raw_kernel_arg;
  const auto& g = range.global;
  const auto& l = range.local;
  // SYCL passes the dimensions of an nd-range to an OpenCL kernel in reverse order.
  const sycl::nd_range<3> nd{{g[2], g[1], g[0]}, {l[2], l[1], l[0]}};
  operands_.resolve();
  const auto name = [&] {
    return "kernel " + kernel.get_info<sycl::info::kernel::function_name>();
  };
  const auto with_arguments = [&](sycl::handler& handler) {
    int i = 0;
    for (Argument& each : arguments_) {
      if (each.operand >= 0) {
        handler.set_arg(i++, operands_[each.operand]);
      } else if (each.usm != nullptr) {
        handler.set_arg(i++, each.usm);
      } else {
        const void* from = each.there != nullptr ? each.there : each.here;
        handler.set_arg(i++, raw_kernel_arg(from, each.bytes));
      }
    }
    handler.parallel_for(nd, kernel);
  };
  sycl::event done;
  {
    const Submission queue = operands_.queue();
    done = submit_to(device_, name, [&] { return queue->submit(with_arguments); });
    operands_.submitted(done, DeviceWork::of(kernel));
  }
  // The scheduler's lock is not taken under the stream's: see Note [Order of locks].
  record_submission(stream_, position_, done);
}

void add_scalar(Launch& launch, const c10::Scalar& scalar, c10::ScalarType type) {
  using c10::ScalarType;
  switch (type) {
    case ScalarType::Double:
      return launch.value(scalar.toDouble());
    case ScalarType::Char:
      return launch.value(scalar.to<int8_t>());
    case ScalarType::Short:
      return launch.value(scalar.to<int16_t>());
    case ScalarType::Int:
      return launch.value(scalar.to<int32_t>());
    case ScalarType::Long:
      return launch.value(scalar.to<int64_t>());
    case ScalarType::Byte:
      return launch.value(scalar.to<uint8_t>());
    case ScalarType::Bool:
      return launch.value(static_cast<uint8_t>(scalar.to<bool>()));
    case ScalarType::ComplexFloat:
      // As in PyTorch's kernels: values out of range become infinite without an error.
      return launch.value(c10::complex<float>(scalar.toComplexDouble()));
    case ScalarType::ComplexDouble:
      return launch.value(scalar.toComplexDouble());
    default:
      return launch.value(static_cast<float>(scalar.toDouble()));
  }
}

}  // namespace xpurt
