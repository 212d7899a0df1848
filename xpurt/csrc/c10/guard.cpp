// PyTorch's device guard for xpu: devices, streams and events of c10.
#include <Python.h>
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/autograd_threads.h"
#include "memory/allocator.h"
#include "memory/gpu_trace.h"
#include "stream/capture.h"
#include "stream/capture_waits.h"
#include "stream/event.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::DeviceType;

Event& event_of(void* event) {
  return *static_cast<Event*>(event);
}

// The `native_handle` by which a tracer identifies a stream. Only for a tracer: a
// stream never counts as idle once its queue was handed out.
uintptr_t handle_of(const c10::Stream& id) {
  return has_tracer() ? address_of(&stream(id).shared_queue()) : 0;
}

c10::Stream new_stream(DeviceIndex index, int priority) {
  const c10::Stream id = pool_stream_id(index, priority);
  notify_tracer(&Tracer::trace_gpu_stream_creation, handle_of(id));
  return id;
}

// Throws for an index that does not exist, if the caller holds the GIL. Autograd's
// threads set their device at their start, without the GIL, to any index, and must not
// fail. All other callers are Python code, and get the exception.
void check_if_asked(DeviceIndex index) {
  const Placement* now = installed_placement();
  if (now != nullptr && static_cast<size_t>(index) < now->ordinals.size()) return;
  if (index >= 0 && Py_IsInitialized() && PyGILState_Check()) ordinal(index);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::XPU; }
  c10::Device exchangeDevice(c10::Device device) const override {
    check_if_asked(device.index());
    return c10::Device(DeviceType::XPU, exchange_device(device.index()));
  }
  c10::Device getDevice() const override {
    return c10::Device(DeviceType::XPU, current_device());
  }
  void setDevice(c10::Device device) const override {
    check_if_asked(device.index());
    exchange_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    exchange_device(device.index());
  }
  // Not the number of ordinals: see Note [Autograd's threads].
  DeviceIndex deviceCount() const noexcept override { return autograd_device_count(); }

  c10::Stream getStream(c10::Device device) const override {
    // Autograd calls this where it cannot handle an exception. Later uses of the stream
    // throw.
    if (in_bad_fork()) return c10::Stream(c10::Stream::DEFAULT, device);
    return current_stream_id(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return default_stream_id(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high) const override {
    return new_stream(device.index(), high ? kHighestPriority : kNormalPriority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return new_stream(device.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream id) const override {
    return exchange_stream(id);
  }
  void* getStreamNativeHandle(const c10::Stream id) const override {
    return &stream(id).shared_queue();
  }
  bool queryStream(const c10::Stream& id) const override { return stream(id).query(); }
  void synchronizeStream(const c10::Stream& id) const override {
    notify_tracer(&Tracer::trace_gpu_stream_synchronization, handle_of(id));
    stream(id).wait();
  }
  void synchronizeDevice(const DeviceIndex index) const override {
    notify_tracer(&Tracer::trace_gpu_device_synchronization);
    synchronize_device(index);
  }
  // SYCL counts a queue that waits for recorded work as recording, too, and autograd
  // orders only streams that are both captured or both not.
  bool isStreamCapturing(const c10::Stream& id) const override {
    if (!capture_is_underway()) return false;
    const Stream& asked = stream(id);
    return is_capturing(asked) || waits_for_captured(asked);
  }

  void record(void** event, const c10::Stream& id, const DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index < 0 || index == id.device_index(), "Event device index ",
                static_cast<int>(index),
                " does not match recording stream's device index ",
                static_cast<int>(id.device_index()), ".");
    if (*event == nullptr) {
      *event = new Event(flag == c10::EventFlag::BACKEND_DEFAULT);
      notify_tracer(&Tracer::trace_gpu_event_creation, address_of(*event));
    }
    event_of(*event).record(stream(id));
    notify_tracer(&Tracer::trace_gpu_event_record, address_of(*event), handle_of(id));
  }
  void block(void* event, const c10::Stream& id) const override {
    if (event == nullptr) return;
    event_of(event).block(stream(id));
    notify_tracer(&Tracer::trace_gpu_event_wait, address_of(event), handle_of(id));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || event_of(event).query();
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    notify_tracer(&Tracer::trace_gpu_event_synchronization, address_of(event));
    event_of(event).synchronize();
  }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    if (event != nullptr) {
      notify_tracer(&Tracer::trace_gpu_event_deletion, address_of(event));
    }
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* start, void* end, const DeviceIndex) const override {
    return event_of(start).elapsed_ms(event_of(end));
  }
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& id) const override {
    device_allocator().recordStream(data, id);
  }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    c10::DeviceCapability all;
    for (const PhysicalDevice* each : ordinal(device.index()).devices) {
      if (!each->has_fp64) {
        all.capability_data.capability_bits &=
            ~((1ULL << c10::kIndex_Double) | (1ULL << c10::kIndex_ComplexDouble));
      }
    }
    return all;
  }
};

C10_REGISTER_GUARD_IMPL(XPU, Guard);

}  // namespace
}  // namespace xpurt
