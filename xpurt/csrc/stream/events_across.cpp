#include "stream/events_across.h"

#include <CL/cl.h>

#include <chrono>
#include <thread>

#include "device/device.h"
#include "device/event_status.h"
#include "host/worker.h"
#include "stream/host_event.h"

namespace xpurt {
namespace {

// Note [Events of another context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A driver accepts only events of its own context: a barrier with other events throws.
// The SYCL runtime can handle such dependencies: it holds the command back, and submits
// it once the event is complete. But the runtime's thread then cleans up a record that
// another thread may be cleaning up at the same time (libsycl 9, seen as a crash in
// cleanupCommand within some thousand ops). So the queue waits for an event of its own
// context, an OpenCL user event. A thread of xpurt waits for the other event, and then
// completes the user event. Some drivers run kernels in the threads that wait. There
// xpurt's thread also works on the kernel that it waits for: see Note [One waiting
// thread for each device].
//
// The thread waits in the driver, and not in sycl::event::wait(). That function holds
// the SYCL runtime's graph lock while it waits for a command's dependencies. A thread
// that submits a barrier needs the same lock. So work that the first thread waits for
// is never submitted (libsycl 9, seen once as a hang of three threads). The driver has
// no event yet for a command behind a host task, and oneDNN runs in host tasks on a
// CPU. The SYCL runtime submits such a command when the host task is over. The thread
// checks for that in short intervals.
//
// The threads take the events in the order of submission: see Note [Background
// threads].
constexpr size_t kMaxThreads = 16;

Worker& event_threads() {
  static auto* const leaked = new Worker("xpurt-event", kMaxThreads);
  return *leaked;
}

// How often a thread checks whether a command was submitted to the driver, and for how
// long: the submission of a command may fail.
constexpr std::chrono::microseconds kInterval{20};
constexpr std::chrono::seconds kPatience{10};

void wait_in_driver(sycl::event event) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!is_submitted(event)) {
    if (is_complete(event)) return;
    if (std::chrono::steady_clock::now() > deadline) return wait_for_end(event);
    std::this_thread::sleep_for(kInterval);
  }
  // Not before: an event of no command has no backend.
  if (event.get_backend() != kOpenCL) return wait_for_end(event);
  for (const cl_event each : sycl::get_native<kOpenCL>(event)) {
    clWaitForEvents(1, &each);
    clReleaseEvent(each);
  }
}

void complete_after(HostEvent& completed, sycl::event awaited) {
  try {
    wait_in_driver(awaited);
  } catch (const sycl::exception&) {
    // The event's stream keeps the error for the next wait.
  }
  completed.complete();
}

}  // namespace

sycl::event event_in(const sycl::context& context, const sycl::event& event) {
  const std::shared_ptr<HostEvent> completed = HostEvent::make(context);
  if (completed == nullptr) {
    wait_for_end(event);
    return {};
  }
  const auto task = event_threads().submit([=] { complete_after(*completed, event); });
  // No thread can be had: this one waits.
  if (task == nullptr) complete_after(*completed, event);
  return completed->event();
}

void wait_for_events_across() {
  event_threads().wait_for_all();
}

}  // namespace xpurt
