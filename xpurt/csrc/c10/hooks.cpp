// PyTorch's hooks for the accelerator XPU. See Note [Late registration].
#include <ATen/detail/XPUHooksInterface.h>

#include "c10/hooks.h"
#include "memory/allocator.h"
#include "memory/pinned.h"
#include "native/share.h"
#include "random/generator.h"
#include "stream/stream.h"

namespace xpurt {
namespace {
std::atomic<bool> active{true};
std::atomic<bool> hidden{false};
}  // namespace

void set_active(bool value) {
  active = value;
}
bool is_active() {
  return active;
}
void hide_accelerator() {
  hidden = true;
}
bool is_hidden() {
  return hidden;
}

}  // namespace xpurt

namespace at {

// PyTorch finds the class by exactly this name.
struct XPUHooks final : XPUHooksInterface {
  void init() const override {}
  bool isBuilt() const override { return xpurt::is_active() && !xpurt::is_hidden(); }
  bool isAvailable() const override { return xpurt::device_count() > 0; }
  bool hasXPU() const override { return xpurt::is_active(); }
  bool hasPrimaryContext(DeviceIndex index) const override {
    const xpurt::Placement* now = xpurt::installed_placement();
    return now != nullptr && index >= 0 &&
           static_cast<size_t>(index) < now->ordinals.size();
  }
  std::string showConfig() const override {
    return "XPU: xpurt, SYCL devices through a stock PyTorch build\n";
  }

  DeviceIndex deviceCount() const override { return xpurt::device_count(); }
  DeviceIndex getNumGPUs() const override { return xpurt::device_count(); }
  DeviceIndex getCurrentDevice() const override { return xpurt::current_device(); }
  DeviceIndex current_device() const override { return xpurt::current_device(); }
  void setCurrentDevice(DeviceIndex index) const override {
    xpurt::ordinal(index);
    xpurt::exchange_device(index);
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    if (index >= 0) xpurt::ordinal(index);
    return xpurt::exchange_device(index);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return xpurt::exchange_device(index);
  }
  void deviceSynchronize(DeviceIndex index) const override {
    xpurt::synchronize_device(index);
  }

  Allocator* getPinnedMemoryAllocator() const override {
    return &xpurt::pinned_allocator();
  }
  bool isPinnedPtr(const void* data) const override { return xpurt::is_pinned(data); }
  Device getDeviceFromPtr(void* data) const override {
    DeviceIndex index = xpurt::device_of_pointer(data);
    if (index < 0) index = xpurt::ordinal_of_borrowed(data);
    TORCH_CHECK_VALUE(
        index >= 0, "the memory at ", data,
        " was not allocated for a tensor on xpu. Arrays of dpctl and dpnp "
        "become tensors by xpurt.from_usm(array), which checks their "
        "device and context.");
    return Device(DeviceType::XPU, index);
  }
  int32_t getGlobalIdxFromDevice(const Device& device) const override {
    return device.index();
  }
  const Generator& getDefaultGenerator(DeviceIndex index) const override {
    return xpurt::default_generator(index);
  }
  Generator getNewGenerator(DeviceIndex index) const override {
    return xpurt::make_generator(index);
  }
};

REGISTER_XPU_HOOKS(XPUHooks);

}  // namespace at

namespace xpurt {

// Note [Late registration]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch makes its hooks object once, at the first call of any hook. If that was
// before this library was loaded, the object is a default one that reports "not built".
// The interface has no data members: both objects are one pointer to a table of virtual
// functions. So an object of xpurt's class can be constructed in its place.
void repair_late_hooks() {
  using Interface = at::XPUHooksInterface;
  static_assert(sizeof(Interface) == sizeof(at::XPUHooks));
  const Interface& found = at::detail::getXPUHooks();
  if (dynamic_cast<const at::XPUHooks*>(&found) == nullptr) {
    new (const_cast<Interface*>(&found)) at::XPUHooks();
  }
}

}  // namespace xpurt
