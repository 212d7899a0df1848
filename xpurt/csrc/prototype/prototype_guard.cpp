// The device guard of a prototype: devices, streams and events.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "prototype/host_guard.h"
#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

// On xpu: the streams and events of xpu.
struct XpuGuard final : HostGuard {
  explicit XpuGuard(const PrototypeDevice& device)
      : HostGuard(device), xpu(*c10::impl::getDeviceGuardImpl(c10::DeviceType::XPU)) {}

  c10::Stream behind(const c10::Stream& own) const {
    return c10::Stream(c10::Stream::UNSAFE, device.behind(own.device()), own.id());
  }
  c10::Stream own(const c10::Stream& behind) const {
    return c10::Stream(c10::Stream::UNSAFE,
                       c10::Device(device.type(), behind.device_index()), behind.id());
  }

  c10::DeviceCapability getDeviceCapability(c10::Device on) const override {
    return xpu.getDeviceCapability(device.behind(on));
  }
  c10::Stream getStream(c10::Device on) const override {
    return own(xpu.getStream(device.behind(on)));
  }
  c10::Stream getDefaultStream(c10::Device on) const override {
    return own(xpu.getDefaultStream(device.behind(on)));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device on, bool high) const override {
    return own(xpu.getStreamFromGlobalPool(device.behind(on), high));
  }
  c10::Stream getNewStream(c10::Device on, int priority) const override {
    return own(xpu.getNewStream(device.behind(on), priority));
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    return own(xpu.exchangeStream(behind(to)));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return xpu.getStreamNativeHandle(behind(stream));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return xpu.queryStream(behind(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    xpu.synchronizeStream(behind(stream));
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    xpu.synchronizeDevice(index);
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return xpu.isStreamCapturing(behind(stream));
  }
  // The storage behind has the memory, and so the pointer that xpu knows.
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& stream) const override {
    const c10::DataPtr seen(data.get(), data.get(), nullptr,
                            device.behind(data.device()));
    xpu.recordDataPtrOnStream(seen, behind(stream));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex index,
              c10::EventFlag flag) const override {
    xpu.record(event, behind(stream), index, flag);
  }
  void block(void* event, const c10::Stream& stream) const override {
    xpu.block(event, behind(stream));
  }
  bool queryEvent(void* event) const override { return xpu.queryEvent(event); }
  void synchronizeEvent(void* event) const override { xpu.synchronizeEvent(event); }
  void destroyEvent(void* event, c10::DeviceIndex index) const noexcept override {
    xpu.destroyEvent(event, index);
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex index) const override {
    return xpu.elapsedTime(begin, end, index);
  }

  const c10::impl::DeviceGuardImplInterface& xpu;
};

}  // namespace

void register_guard(const PrototypeDevice& device) {
  const c10::impl::DeviceGuardImplInterface* guard =
      device.sycl() != nullptr ? make_sycl_guard(device)
      : device.is_on_host()    ? new HostGuard(device)
                               : new XpuGuard(device);
  const c10::impl::DeviceGuardImplRegistrar registrar(device.type(), guard);
}

}  // namespace xpurt
