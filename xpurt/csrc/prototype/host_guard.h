// The device guard of a prototype on the host; the others change its streams.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "prototype/prototype_device.h"

namespace xpurt {

// On the host, where an op has ended when it returns: a device has one stream.
struct HostGuard : c10::impl::DeviceGuardImplInterface {
  explicit HostGuard(const PrototypeDevice& device) : device(device) {}

  c10::DeviceType type() const override { return device.type(); }
  c10::Device exchangeDevice(c10::Device to) const override {
    if (to.has_index()) device.own(to.index());
    return {device.type(), device.exchange(to.index())};
  }
  c10::Device getDevice() const override { return {device.type(), device.current()}; }
  void setDevice(c10::Device to) const override { exchangeDevice(to); }
  void uncheckedSetDevice(c10::Device to) const noexcept override {
    device.exchange(to.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device.count(); }

  // The CPU's kernels have all types.
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device on) const override {
    return c10::Stream(c10::Stream::DEFAULT, on);
  }
  c10::Stream getDefaultStream(c10::Device on) const override {
    return c10::Stream(c10::Stream::DEFAULT, on);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device on, bool) const override {
    return c10::Stream(c10::Stream::DEFAULT, on);
  }
  c10::Stream getNewStream(c10::Device on, int) const override {
    return c10::Stream(c10::Stream::DEFAULT, on);
  }
  c10::Stream exchangeStream(c10::Stream to) const override { return to; }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
  bool isStreamCapturing(const c10::Stream&) const override { return false; }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream&, c10::DeviceIndex,
              c10::EventFlag) const override {
    static char recorded;  // an event that has happened
    *event = &recorded;
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  double elapsedTime(void*, void*, c10::DeviceIndex) const override { return 0; }

  const PrototypeDevice& device;
};

}  // namespace xpurt
