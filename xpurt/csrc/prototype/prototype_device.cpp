#include "prototype/prototype_device.h"

#include <c10/core/TensorOptions.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>

#include "prototype/prototype_memory.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::DeviceType;
using c10::DispatchKey;

constexpr size_t kTypes = c10::COMPILE_TIME_MAX_DEVICE_TYPES;

std::array<std::atomic<const PrototypeDevice*>, kTypes> devices;
thread_local std::array<DeviceIndex, kTypes> current_index{};

c10::BackendComponent component_of(DeviceType type) {
  return c10::toBackendComponent(
      c10::computeDispatchKey(c10::ScalarType::Float, c10::Layout::Strided, type));
}

}  // namespace

PrototypeDevice::PrototypeDevice(DeviceType type, DeviceType behind, DeviceIndex count,
                                 const SyclMemory* sycl)
    : type_(type),
      behind_(behind),
      count_(count),
      sycl_(sycl),
      memory_(*new PrototypeMemory(count)),  // for the process, as the device
      keys_{component_of(type), component_of(behind)} {}

bool PrototypeDevice::copies() const {
  return sycl_ != nullptr && !sycl_->is_host_accessible();
}

c10::Device PrototypeDevice::own(DeviceIndex index) const {
  TORCH_CHECK_INDEX(index >= 0 && index < count_, "there is no device ",
                    c10::DeviceTypeName(type_, /*lower_case=*/true), ":",
                    static_cast<int>(index), "; found ", static_cast<int>(count_),
                    " of them. prototype_device(..., devices=N) makes N.");
  return {type_, index};
}

c10::Device PrototypeDevice::behind(c10::Device own) const {
  if (is_on_host()) return c10::kCPU;
  return {behind_, own.has_index() ? own.index() : current()};
}

DispatchKey PrototypeDevice::own_key(DispatchKey layout) const {
  return c10::toRuntimePerBackendFunctionalityKey(layout, keys_.from);
}

DispatchKey PrototypeDevice::key_behind(DispatchKey layout) const {
  return c10::toRuntimePerBackendFunctionalityKey(layout, keys_.to);
}

DeviceIndex PrototypeDevice::current() const {
  return current_index[static_cast<size_t>(type_)];
}

DeviceIndex PrototypeDevice::exchange(DeviceIndex index) const {
  DeviceIndex& current = current_index[static_cast<size_t>(type_)];
  return index < 0 ? current : std::exchange(current, index);
}

const PrototypeDevice* prototype_device(DeviceType type) {
  return devices[static_cast<size_t>(type)];
}

const PrototypeDevice& make_prototype_device(DeviceType type, DeviceType behind,
                                             DeviceIndex count,
                                             const SyclMemory* sycl) {
  TORCH_CHECK_VALUE(!c10::impl::hasDeviceGuardImpl(type), "the device type ",
                    c10::DeviceTypeName(type, /*lower_case=*/true),
                    " has a device already. Take another type.");
  const auto* made = new PrototypeDevice(type, behind, count, sycl);  // for the process
  devices[static_cast<size_t>(type)] = made;
  register_guard(*made);
  register_allocator(*made);
  install_hooks(*made);
  register_ops(*made);
  register_collectives(*made);
  register_autocast(*made);
  return *made;
}

}  // namespace xpurt
