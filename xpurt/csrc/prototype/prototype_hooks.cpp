// PyTorch's hooks for the device types of prototypes.
#include <ATen/detail/HPUHooksInterface.h>
#include <ATen/detail/MTIAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/detail/XLAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "host/mutex.h"
#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::DeviceType;

// Memory of the host is as good as any for a device behind which the host is. PyTorch
// asks which memory is pinned.
class PinnedMemory final : public c10::Allocator {
 public:
  static PinnedMemory& of_process() {
    static auto* const leaked = new PinnedMemory;
    return *leaked;
  }

  c10::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{c10::GetCPUAllocator()->allocate(bytes)};
    void* pointer = block->data.get();
    if (pointer != nullptr) {
      const std::lock_guard<Mutex> lock(mutex_);
      end_of_[static_cast<const char*>(pointer)] =
          static_cast<const char*>(pointer) + bytes;
    }
    return {pointer, block, &release, c10::kCPU};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool contains(const void* pointer) {
    const std::lock_guard<Mutex> lock(mutex_);
    const auto above = end_of_.upper_bound(static_cast<const char*>(pointer));
    return above != end_of_.begin() && pointer < std::prev(above)->second;
  }

 private:
  struct Block {
    c10::DataPtr data;
  };

  static void release(void* address) {
    const std::unique_ptr<Block> block(static_cast<Block*>(address));
    const std::lock_guard<Mutex> lock(of_process().mutex_);
    of_process().end_of_.erase(static_cast<const char*>(block->data.get()));
  }

  Mutex mutex_{Rank::pinned_memory};
  std::map<const char*, const char*> end_of_;  // by the begin of a block
};

// What all types have in common. PyTorch has hooks of one class per type.
template <typename Interface, DeviceType type>
struct Hooks : Interface {
  static const PrototypeDevice& device() { return *prototype_device(type); }

  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex index) const override {
    return index >= 0 && index < device().count();
  }
  DeviceIndex deviceCount() const override { return device().count(); }
  DeviceIndex getCurrentDevice() const override { return device().current(); }
  void setCurrentDevice(DeviceIndex index) const override { exchangeDevice(index); }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return device().exchange(device().own(index).index());
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return device().exchange(index);
  }
  bool isPinnedPtr(const void* pointer) const override {
    return PinnedMemory::of_process().contains(pointer);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return &PinnedMemory::of_process();
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return prototype_generator(device().own(index < 0 ? device().current() : index));
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return new_prototype_generator(
        device().own(index < 0 ? device().current() : index));
  }
};

struct Hpu final : Hooks<at::HPUHooksInterface, DeviceType::HPU> {
  bool hasHPU() const override { return true; }
};

struct Xla final : Hooks<at::XLAHooksInterface, DeviceType::XLA> {
  bool hasXLA() const override { return true; }
};

struct Mtia final : Hooks<at::MTIAHooksInterface, DeviceType::MTIA> {
  static const c10::impl::DeviceGuardImplInterface& guard() {
    return *c10::impl::getDeviceGuardImpl(DeviceType::MTIA);
  }

  bool hasMTIA() const override { return true; }
  DeviceIndex getDeviceCount() const override { return device().count(); }
  void emptyCache() const override {
    c10::getDeviceAllocator(DeviceType::MTIA)->emptyCache();
  }
  void resetPeakMemoryStats(DeviceIndex index) const override {
    c10::getDeviceAllocator(DeviceType::MTIA)->resetPeakStats(index);
  }
  void deviceSynchronize(DeviceIndex index) const override {
    guard().synchronizeDevice(index);
  }
  c10::Stream getCurrentStream(DeviceIndex index) const override {
    return guard().getStream(device().own(index));
  }
  c10::Stream getDefaultStream(DeviceIndex index) const override {
    return guard().getDefaultStream(device().own(index));
  }
  void setCurrentStream(const c10::Stream& stream) const override {
    guard().exchangeStream(stream);
  }
};

struct PrivateUse1 final
    : Hooks<at::PrivateUse1HooksInterface, DeviceType::PrivateUse1> {
  // Called for a storage that an op gives another size to.
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = impl->allocator()->allocate(bytes);
    impl->allocator()->copy_data(data.get(), impl->data(),
                                 std::min(bytes, impl->nbytes()));
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
};

// PyTorch has made an object of the default class already, or makes one by the name of
// the class. An interface has no data members: both objects are one pointer to a table
// of virtual functions. See Note [Late registration].
template <typename Made, typename Interface>
void replace(const Interface& found) {
  static_assert(sizeof(Interface) == sizeof(Made));
  new (const_cast<Interface*>(&found)) Made();
}

}  // namespace

void install_hooks(const PrototypeDevice& device) {
  switch (device.type()) {
    case DeviceType::HPU:
      return replace<Hpu>(at::detail::getHPUHooks());
    case DeviceType::XLA:
      return replace<Xla>(at::detail::getXLAHooks());
    case DeviceType::MTIA:
      return replace<Mtia>(at::detail::getMTIAHooks());
    case DeviceType::PrivateUse1:
      return at::RegisterPrivateUse1HooksInterface(new PrivateUse1);
    default:
      return;
  }
}

}  // namespace xpurt
