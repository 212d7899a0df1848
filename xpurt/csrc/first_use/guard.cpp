// The device guard of xpu before its first use. See Note [First use].
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "first_use/first_use.h"

namespace xpurt {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;
using Interface = c10::impl::DeviceGuardImplInterface;

const Interface& loaded() {
  XPURT_CHECK_LOADED(load());
  return *c10::impl::getDeviceGuardImpl(DeviceType::XPU);
}

struct FirstUseGuard final : Interface {
  DeviceType type() const override { return DeviceType::XPU; }
  // Of threads of autograd: see Note [Autograd's threads] in
  // device/autograd_threads.cpp.
  DeviceIndex deviceCount() const noexcept override { return 0; }

  Device exchangeDevice(Device device) const override {
    return loaded().exchangeDevice(device);
  }
  Device getDevice() const override { return loaded().getDevice(); }
  void setDevice(Device device) const override { loaded().setDevice(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (load()) c10::impl::getDeviceGuardImpl(type())->uncheckedSetDevice(device);
  }
  c10::DeviceCapability getDeviceCapability(Device device) const override {
    return loaded().getDeviceCapability(device);
  }

  Stream getStream(Device device) const override { return loaded().getStream(device); }
  Stream getDefaultStream(Device device) const override {
    return loaded().getDefaultStream(device);
  }
  Stream getStreamFromGlobalPool(Device device, bool high) const override {
    return loaded().getStreamFromGlobalPool(device, high);
  }
  Stream getNewStream(Device device, int priority) const override {
    return loaded().getNewStream(device, priority);
  }
  Stream exchangeStream(Stream stream) const override {
    return loaded().exchangeStream(stream);
  }
  void* getStreamNativeHandle(const Stream stream) const override {
    return loaded().getStreamNativeHandle(stream);
  }
  bool queryStream(const Stream& stream) const override {
    return loaded().queryStream(stream);
  }
  void synchronizeStream(const Stream& stream) const override {
    loaded().synchronizeStream(stream);
  }
  bool isStreamCapturing(const Stream& stream) const override {
    return loaded().isStreamCapturing(stream);
  }
  void synchronizeDevice(const DeviceIndex index) const override {
    loaded().synchronizeDevice(index);
  }

  void record(void** event, const Stream& stream, const DeviceIndex index,
              const c10::EventFlag flag) const override {
    loaded().record(event, stream, index, flag);
  }
  void block(void* event, const Stream& stream) const override {
    if (event != nullptr) loaded().block(event, stream);
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || loaded().queryEvent(event);
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) loaded().synchronizeEvent(event);
  }
  void destroyEvent(void* event, const DeviceIndex index) const noexcept override {
    if (event == nullptr || !load()) return;
    c10::impl::getDeviceGuardImpl(type())->destroyEvent(event, index);
  }
  double elapsedTime(void* start, void* end, const DeviceIndex index) const override {
    return loaded().elapsedTime(start, end, index);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const Stream& stream) const override {
    loaded().recordDataPtrOnStream(data, stream);
  }
};

}  // namespace

void install_guard() {
  static const FirstUseGuard* const leaked = new FirstUseGuard;
  const c10::impl::DeviceGuardImplRegistrar registrar(DeviceType::XPU, leaked);
}

}  // namespace xpurt
