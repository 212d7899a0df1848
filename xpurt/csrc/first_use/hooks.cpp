// The hooks of the accelerator XPU before its first use. See Note [First use].
#include <ATen/Context.h>
#include <ATen/detail/XPUHooksInterface.h>

#include <new>

#include "c10/cuda_build.h"
#include "first_use/first_use.h"

namespace xpurt {
namespace {

using at::DeviceIndex;
using Interface = at::XPUHooksInterface;

// The object of the process. xpurt constructs its own in the same place: see Note [Late
// registration] in c10/hooks.cpp. So it is read again after each load.
const Interface& now() {
  return at::detail::getXPUHooks();
}

const Interface& loaded() {
  XPURT_CHECK_LOADED(load());
  return now();
}

struct FirstUseHooks final : Interface {
  void init() const override {}
  bool isBuilt() const override { return !has_stepped_aside(); }
  bool hasPrimaryContext(DeviceIndex) const override { return false; }
  bool isPinnedPtr(const void*) const override { return false; }

  bool isAvailable() const override { return load() && now().isAvailable(); }
  bool hasXPU() const override { return load() && now().hasXPU(); }
  DeviceIndex deviceCount() const override {
    return load() ? now().deviceCount() : DeviceIndex(0);
  }
  DeviceIndex getNumGPUs() const override { return deviceCount(); }
  std::string showConfig() const override {
    return load() ? now().showConfig() : std::string();
  }

  DeviceIndex getCurrentDevice() const override { return loaded().getCurrentDevice(); }
  DeviceIndex current_device() const override { return loaded().current_device(); }
  void setCurrentDevice(DeviceIndex index) const override {
    loaded().setCurrentDevice(index);
  }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return loaded().exchangeDevice(index);
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return loaded().maybeExchangeDevice(index);
  }
  void deviceSynchronize(DeviceIndex index) const override {
    loaded().deviceSynchronize(index);
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return loaded().getPinnedMemoryAllocator();
  }
  at::Device getDeviceFromPtr(void* data) const override {
    return loaded().getDeviceFromPtr(data);
  }
  int32_t getGlobalIdxFromDevice(const at::Device& device) const override {
    return loaded().getGlobalIdxFromDevice(device);
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return loaded().getDefaultGenerator(index);
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return loaded().getNewGenerator(index);
  }
};

}  // namespace

void install_hooks() {
  static_assert(sizeof(Interface) == sizeof(FirstUseHooks));
  new (const_cast<Interface*>(&now())) FirstUseHooks();
  yield_cuda_while([] { return !has_stepped_aside(); });
}

}  // namespace xpurt
