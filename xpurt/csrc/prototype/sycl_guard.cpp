// The device guard of a prototype on SYCL devices: its streams are queues.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device/event_status.h"
#include "prototype/host_guard.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::Stream;

sycl::event& event_at(void* event) {
  return *static_cast<sycl::event*>(event);
}

struct SyclGuard final : HostGuard {
  explicit SyclGuard(const PrototypeDevice& device)
      : HostGuard(device), memory(*device.sycl()) {}

  // The index of a device, which may be "the current one".
  DeviceIndex index_of(c10::Device on) const {
    return on.has_index() ? device.own(on.index()).index() : device.current();
  }
  Stream stream(DeviceIndex index, c10::StreamId id) const {
    return Stream(Stream::UNSAFE, c10::Device(device.type(), index), id);
  }
  sycl::queue& queue(const Stream& of) const {
    return memory.queue(index_of(of.device()), of.id());
  }

  Stream getStream(c10::Device on) const override {
    const DeviceIndex index = index_of(on);
    return stream(index, memory.current_stream(index));
  }
  Stream getDefaultStream(c10::Device on) const override {
    return stream(index_of(on), 0);
  }
  Stream getStreamFromGlobalPool(c10::Device on, bool) const override {
    return getNewStream(on, 0);
  }
  Stream getNewStream(c10::Device on, int) const override {
    const DeviceIndex index = index_of(on);
    return stream(index, memory.new_stream(index));
  }
  Stream exchangeStream(Stream to) const override {
    queue(to);  // throws if there is none
    return stream(to.device_index(),
                  memory.exchange_stream(to.device_index(), to.id()));
  }
  void* getStreamNativeHandle(const Stream of) const override { return &queue(of); }
  bool queryStream(const Stream& of) const override { return is_done(queue(of)); }
  void synchronizeStream(const Stream& of) const override { wait_for_queue(queue(of)); }
  void synchronizeDevice(DeviceIndex index) const override {
    memory.synchronize(index < 0 ? device.current() : device.own(index).index());
  }

  void record(void** event, const Stream& of, DeviceIndex,
              c10::EventFlag) const override {
    const sycl::event made = memory.mark(index_of(of.device()), of.id());
    if (*event == nullptr) {
      *event = new sycl::event(made);
    } else {
      event_at(*event) = made;
    }
  }
  void block(void* event, const Stream& of) const override {
    if (event == nullptr || is_complete(event_at(event))) return;
    queue(of).ext_oneapi_submit_barrier({event_at(event)});
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || is_complete(event_at(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) wait_for_event(event_at(event));
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<sycl::event*>(event);
  }
  double elapsedTime(void* begin, void* end, DeviceIndex) const override {
    const auto ended_ns = [](void* event) {
      wait_for_end(event_at(event));
      return event_at(event)
          .get_profiling_info<sycl::info::event_profiling::command_end>();
    };
    const auto from = static_cast<int64_t>(ended_ns(begin));
    return static_cast<double>(static_cast<int64_t>(ended_ns(end)) - from) * 1e-6;
  }

  const SyclMemory& memory;
};

}  // namespace

const c10::impl::DeviceGuardImplInterface* make_sycl_guard(
    const PrototypeDevice& device) {
  return new SyclGuard(device);
}

}  // namespace xpurt
