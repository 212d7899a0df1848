#include "prototype/prototype_device.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <cstring>

#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::DeviceType;
using c10::DispatchKey;
using c10::Storage;
using c10::StorageImpl;

constexpr size_t kTypes = c10::COMPILE_TIME_MAX_DEVICE_TYPES;

std::array<std::atomic<const PrototypeDevice*>, kTypes> devices;
thread_local std::array<DeviceIndex, kTypes> current_index{};

void release(void* storage) {
  c10::raw::intrusive_ptr::decref(static_cast<StorageImpl*>(storage));
}

// The storage that memory of a prototype belongs to; nullptr for other memory.
StorageImpl* owned(const c10::DataPtr& data) {
  if (data.get_deleter() != &release) return nullptr;
  return static_cast<StorageImpl*>(data.get_context());
}

// A storage of the device behind `own`.
Storage made_behind(const PrototypeDevice& device, size_t bytes, c10::Device own) {
  const c10::Device behind = device.behind(own);
  const c10::DeviceGuard guard(behind);
  c10::Allocator* allocator = device.sycl() != nullptr
                                  ? &device.sycl()->host_allocator(own.index())
                                  : c10::GetAllocator(behind.type());
  return c10::make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), bytes,
                                          allocator->allocate(bytes), allocator,
                                          /*resizable=*/true);
}

// Memory of the current device of the type.
struct Allocator final : c10::Allocator {
  explicit Allocator(const PrototypeDevice& device) : device(device) {}

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device own = device.own(device.current());
    if (device.copies()) return device.sycl()->allocate(own.index(), bytes, own);
    return own_data(made_behind(device, bytes, own), own);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    if (device.sycl() != nullptr) {
      return device.sycl()->copy(device.current(), to, from, bytes);
    }
    c10::GetAllocator(device.type_behind())->copy_data(to, from, bytes);
  }

  const PrototypeDevice& device;
};

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

// What kernels of the CPU allocated for their results is copied to the SYCL device.
c10::DataPtr own_data(Storage behind, c10::Device own) {
  const PrototypeDevice& device = *prototype_device(own.type());
  if (device.copies()) {
    c10::DataPtr made = device.sycl()->allocate(own.index(), behind.nbytes(), own);
    device.sycl()->copy(own.index(), made.get(), behind.data(), behind.nbytes());
    return made;
  }
  if (device.sycl() != nullptr && !SyclMemory::is_owner_of(behind.data_ptr())) {
    Storage made = made_behind(device, behind.nbytes(), own);
    std::memcpy(made.mutable_data(), behind.data(), behind.nbytes());
    behind = std::move(made);
  }
  StorageImpl* impl = behind.unsafeReleaseStorageImpl();
  return {impl->mutable_data(), impl, &release, own};
}

Storage own_storage(Storage behind, c10::Device own) {
  const size_t bytes = behind.nbytes();
  const bool resizable = behind.resizable();
  return c10::make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(), bytes,
                                          own_data(std::move(behind), own),
                                          c10::GetAllocator(own.type()), resizable);
}

Storage storage_behind(const PrototypeDevice& device, const Storage& own) {
  StorageImpl* impl = own.unsafeGetStorageImpl();
  const SyclMemory* sycl = device.sycl();
  if (device.copies()) {
    c10::Allocator* on_host = c10::GetCPUAllocator();
    Storage copy(Storage::use_byte_size_t(), impl->nbytes(), on_host,
                 impl->resizable());
    sycl->copy(own.device().index(), copy.mutable_data(), impl->data(), impl->nbytes());
    return copy;
  }
  if (sycl != nullptr) sycl->wait(own.device().index());
  if (StorageImpl* found = owned(impl->data_ptr())) {
    found->set_nbytes(impl->nbytes());
    return Storage(c10::intrusive_ptr<StorageImpl>::reclaim_copy(found));
  }
  TORCH_CHECK(
      device.is_on_host() || impl->nbytes() == 0, "memory of ", own.device(),
      " that the device's allocator did not make can't be used by xpu, which is "
      "behind it. Allocate it with torch.empty(..., device=\"",
      own.device(), "\").");
  c10::raw::intrusive_ptr::incref(impl);
  c10::DataPtr data(impl->mutable_data(), impl, &release, device.behind(own.device()));
  return c10::make_intrusive<StorageImpl>(StorageImpl::use_byte_size_t(),
                                          impl->nbytes(), std::move(data),
                                          c10::GetCPUAllocator(), impl->resizable());
}

void follow(StorageImpl& own, const Storage& behind) {
  const StorageImpl* impl = behind.unsafeGetStorageImpl();
  if (own.data() != impl->data()) {
    own.set_data_ptr_noswap(own_data(behind, own.device()));
  }
  own.set_nbytes(impl->nbytes());
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
  c10::SetAllocator(type, new Allocator(*made));
  install_hooks(*made);
  register_ops(*made);
  register_collectives(*made);
  register_autocast(*made);
  return *made;
}

}  // namespace xpurt
