// The storages of a prototype, and its allocator: see Note [Prototype devices].
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstring>

#include "host/host_memory.h"
#include "memory/allocator.h"
#include "prototype/prototype_memory.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::Storage;
using c10::StorageImpl;

// What a storage of a prototype owns.
struct Owned {
  Storage behind;      // has the memory; none where kernels get copies
  c10::DataPtr alone;  // the memory, where kernels get copies
  PrototypeMemory& memory;
  DeviceIndex index;
  PrototypeMemory::Amount amount;
};

void release_owned(void* address) {
  const std::unique_ptr<Owned> owned(static_cast<Owned*>(address));
  if (owned->amount.bytes != 0) owned->memory.given_back(owned->index, owned->amount);
}

void release_storage(void* storage) {
  c10::raw::intrusive_ptr::decref(static_cast<StorageImpl*>(storage));
}

// The storage that memory of a prototype belongs to; nullptr for other memory.
StorageImpl* behind_of(const c10::DataPtr& data) {
  if (data.get_deleter() != &release_owned) return nullptr;
  return static_cast<Owned*>(data.get_context())->behind.unsafeGetStorageImpl();
}

c10::DataPtr counted(const PrototypeDevice& device, Storage behind, c10::DataPtr alone,
                     size_t bytes, c10::Device own) {
  void* pointer = behind ? behind.mutable_data() : alone.get();
  size_t block = pointer == nullptr ? 0 : bytes;
  if (block != 0 && behind && !device.is_on_host()) {
    block = std::max(block, block_of_pointer(pointer).bytes);
  }
  const auto amount = MemoryStatistics::unpooled(block, bytes);
  if (block != 0) device.memory().taken(own.index(), amount);
  auto* owned = new Owned{std::move(behind), std::move(alone), device.memory(),
                          own.index(), amount};
  return {pointer, owned, &release_owned, own};
}

c10::DataPtr alone(const PrototypeDevice& device, size_t bytes, c10::Device own) {
  return counted(device, {}, device.sycl()->allocate(own.index(), bytes, own), bytes,
                 own);
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
struct Allocator final : c10::DeviceAllocator {
  explicit Allocator(const PrototypeDevice& device) : device(device) {}

  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device own = device.own(device.current());
    if (device.copies()) return alone(device, bytes, own);
    return own_data(made_behind(device, bytes, own), own);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    if (device.sycl() != nullptr) {
      return device.sycl()->copy(device.current(), to, from, bytes);
    }
    c10::GetAllocator(device.type_behind())->copy_data(to, from, bytes);
  }

  bool initialized() override { return true; }
  // All that is cached is xpu's.
  void emptyCache(c10::MempoolId_t pool) override {
    if (!device.is_on_host()) on_xpu().emptyCache(pool);
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    c10::impl::getDeviceGuardImpl(device.type())->recordDataPtrOnStream(data, stream);
  }
  PrototypeMemory::Stats getDeviceStats(DeviceIndex index) override {
    return device.memory().stats(of(index));
  }
  void resetAccumulatedStats(DeviceIndex index) override {
    device.memory().reset_accumulated(of(index));
  }
  void resetPeakStats(DeviceIndex index) override {
    device.memory().reset_peaks(of(index));
  }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex index) override {
    if (!device.is_on_host()) return on_xpu().getMemoryInfo(of(index));
    if (device.sycl() == nullptr) {
      const HostMemory host = host_memory();
      return {host.free, host.total};
    }
    const MemoryAmounts amounts = device.sycl()->amounts(of(index), [&] {
      return static_cast<uint64_t>(
          device.memory().stats(of(index)).reserved_bytes[0].current);
    });
    return {amounts.free, amounts.total};
  }

  DeviceIndex of(DeviceIndex index) const {
    return index < 0 ? device.current() : device.own(index).index();
  }
  static c10::DeviceAllocator& on_xpu() {
    return *c10::getDeviceAllocator(c10::DeviceType::XPU);
  }

  const PrototypeDevice& device;
};

}  // namespace

// What kernels of the CPU allocated for their results is copied to the SYCL device.
c10::DataPtr own_data(Storage behind, c10::Device own) {
  const PrototypeDevice& device = *prototype_device(own.type());
  if (device.copies()) {
    c10::DataPtr made = alone(device, behind.nbytes(), own);
    device.sycl()->copy(own.index(), made.get(), behind.data(), behind.nbytes());
    return made;
  }
  if (device.sycl() != nullptr && !SyclMemory::is_owner_of(behind.data_ptr())) {
    Storage made = made_behind(device, behind.nbytes(), own);
    std::memcpy(made.mutable_data(), behind.data(), behind.nbytes());
    behind = std::move(made);
  }
  const size_t bytes = behind.nbytes();
  return counted(device, std::move(behind), {}, bytes, own);
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
  if (StorageImpl* found = behind_of(impl->data_ptr())) {
    found->set_nbytes(impl->nbytes());
    return Storage(c10::intrusive_ptr<StorageImpl>::reclaim_copy(found));
  }
  TORCH_CHECK(
      device.is_on_host() || impl->nbytes() == 0, "memory of ", own.device(),
      " that the device's allocator did not make can't be used by xpu, which is "
      "behind it. Allocate it with torch.empty(..., device=\"",
      own.device(), "\").");
  c10::raw::intrusive_ptr::incref(impl);
  c10::DataPtr data(impl->mutable_data(), impl, &release_storage,
                    device.behind(own.device()));
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

void register_allocator(const PrototypeDevice& device) {
  c10::SetAllocator(device.type(), new Allocator(device));
}

}  // namespace xpurt
