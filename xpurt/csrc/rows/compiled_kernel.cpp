#include "rows/compiled_kernel.h"

#include <algorithm>

#include "device/device_failure.h"
#include "schedule/explain.h"
#include "schedule/policy.h"

namespace xpurt {
namespace {

constexpr bool is_tensor(char letter) {
  return letter == 'r' || letter == 'w' || letter == 'u';
}

Access access_of(char letter) {
  if (letter == 'r') return Access::read;
  return letter == 'w' ? Access::write : Access::read_write;
}

}  // namespace

c10::DeviceIndex CompiledKernel::index_of(Arguments arguments) const {
  TORCH_CHECK_VALUE(arguments.size() == spec_.arguments.size(), "the kernel ",
                    spec_.key, " takes ", spec_.arguments.size(), " arguments; found ",
                    arguments.size());
  c10::DeviceIndex index = -1;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::TensorBase* tensor = arguments[i].tensor;
    TORCH_CHECK_VALUE((tensor != nullptr) == is_tensor(spec_.arguments[i]), "argument ",
                      i, " of the kernel ", spec_.key,
                      tensor == nullptr ? " is no tensor" : " is a tensor");
    if (tensor == nullptr) continue;
    TORCH_CHECK_VALUE(tensor->is_xpu(), "argument ", i, " of the kernel ", spec_.key,
                      " is on ", tensor->device(), ", not on xpu");
    TORCH_CHECK_VALUE(index < 0 || tensor->device().index() == index,
                      "the arguments of the kernel ", spec_.key,
                      " are on xpu:", static_cast<int>(index), " and on ",
                      tensor->device());
    index = tensor->device().index();
  }
  TORCH_CHECK_VALUE(index >= 0, "the kernel ", spec_.key, " has no tensor");
  return index;
}

size_t CompiledKernel::choose_position(Arguments arguments, Stream& stream,
                                       int64_t elements) const {
  const Ordinal& on = stream.ordinal();
  if (on.devices.size() == 1 || at_home_.load()) return on.home;
  OpCost cost;
  cost.elements = elements;
  cost.flops = spec_.flops;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].tensor == nullptr) continue;
    if (spec_.arguments[i] != 'w') cost.read(*arguments[i].tensor);
    if (spec_.arguments[i] != 'r') cost.write(*arguments[i].tensor);
  }
  RowRun run;
  return choose_device(cost, stream, run, spec_.planned);
}

std::string CompiledKernel::reason(size_t position, const Ordinal& devices) const {
  if (devices.devices.size() == 1) return "the only device";
  if (spec_.planned < 0) return "predicted to finish first, by costs alone";
  return static_cast<int>(position) == spec_.planned
             ? "planned with the whole graph"
             : "the device that was planned can't run it";
}

const sycl::kernel& CompiledKernel::built_for(const PhysicalDevice& device) {
  if (device.id >= kCountedDevices) return kernel_for(device, spec_.key);
  auto& slot = built_[device.id];
  const sycl::kernel* kernel = slot.load(std::memory_order_acquire);
  if (C10_LIKELY(kernel != nullptr)) return *kernel;
  kernel = &kernel_for(device, spec_.key);
  slot.store(kernel, std::memory_order_release);
  return *kernel;
}

// The kernel for the device at `position`. If its driver refuses the kernel, that for
// the home device, whose position is set.
const sycl::kernel& CompiledKernel::built_near(const Ordinal& on, size_t& position) {
  const PhysicalDevice& device = *on.devices[position];
  if (position == on.home) return built_for(device);
  const size_t refused = last_refusal().count;
  try {
    return built_for(device);
  } catch (...) {
    if (last_refusal().count == refused) throw;
  }
  if (!at_home_.exchange(true)) {
    TORCH_WARN("the driver of ", device.name, " refuses to build the compiled kernel ",
               last_refusal().entry, ": from now on ", on.home_device().name,
               " computes it. The driver says:\n", last_refusal().log);
  }
  position = on.home;
  return built_for(on.home_device());
}

void CompiledKernel::build(c10::DeviceIndex index) {
  built_for(ordinal(index).home_device());
}

void CompiledKernel::launch(Arguments arguments, std::array<size_t, 3> sizes) {
  const c10::DeviceIndex index = index_of(arguments);
  const size_t elements = sizes[0] * sizes[1] * sizes[2];
  if (elements == 0) return;
  Stream& stream = current_stream(index);
  const Ordinal& devices = stream.ordinal();
  size_t position = choose_position(arguments, stream, static_cast<int64_t>(elements));
  try {
    launch_at(position, stream, arguments, sizes);
  } catch (const DeviceFailure& failure) {
    if (position == devices.home) throw;
    take_out(failure);
    position = devices.home;
    launch_at(position, stream, arguments, sizes);
  }
  if (C10_UNLIKELY(is_explaining())) {
    explain_other(spec_.key.substr(spec_.key.rfind(';') + 1),
                  devices.devices[position]->name, Tier::sycl,
                  reason(position, devices));
  }
}

void CompiledKernel::launch_at(size_t& position, Stream& stream, Arguments arguments,
                               std::array<size_t, 3> sizes) {
  const sycl::kernel& kernel = built_near(stream.ordinal(), position);
  Launch launch(stream, position);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const CompiledKernelArgument& each = arguments[i];
    const char letter = spec_.arguments[i];
    if (each.tensor != nullptr) {
      launch.tensor(*each.tensor, access_of(letter));
    } else if (letter == 'i') {
      launch.value(each.integer);
    } else if (letter == 'd') {
      launch.value(each.real);
    } else {
      launch.value(static_cast<float>(each.real));
    }
  }
  if (spec_.faults) launch.pointer(stream.fault_word(position));
  if (spec_.lanes) sizes[0] *= std::max(traits(launch.device()).sub_group, 1);
  Range range;
  size_t left =
      work_group_of(launch.device(), spec_.group[0] * spec_.group[1] * spec_.group[2]);
  for (size_t d = 0; d < 3; ++d) {
    range.local[d] = std::min(spec_.group[d], left);
    left /= range.local[d];
    range.global[d] = (sizes[d] + range.local[d] - 1) / range.local[d] * range.local[d];
  }
  launch.submit(kernel, range);
}

}  // namespace xpurt
