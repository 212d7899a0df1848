// Events that the host completes.
#pragma once

#include <atomic>
#include <memory>
#include <sycl/sycl.hpp>

namespace xpurt {

// Queues wait for it, by wait_event() of a stream, until a thread calls complete().
class HostEvent {
 public:
  // nullptr on a backend other than OpenCL, where no such event can be made.
  static std::shared_ptr<HostEvent> make(const sycl::context& context);

  HostEvent(const HostEvent&) = delete;
  HostEvent& operator=(const HostEvent&) = delete;
  // Work that waits for the event must not wait forever.
  ~HostEvent() { complete(); }

  const sycl::event& event() const { return event_; }
  // Later calls have no effect.
  void complete() noexcept;

 private:
  HostEvent(const sycl::context& context, void* user_event);

  sycl::event event_;
  std::atomic<void*> user_event_;  // a cl_event; nullptr once it is complete
};

}  // namespace xpurt
