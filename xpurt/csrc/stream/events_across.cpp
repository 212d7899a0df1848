#include "stream/events_across.h"

#include <CL/cl.h>

#include <vector>

#include "device/device.h"
#include "host/worker.h"

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
// The threads take the events in the order of submission: see Note [Background
// threads].
constexpr size_t kMaxThreads = 16;

Worker& event_threads() {
  static auto* const leaked = new Worker("xpurt-event", kMaxThreads);
  return *leaked;
}

void complete_after(cl_event completed, sycl::event awaited) {
  try {
    awaited.wait();
  } catch (const sycl::exception&) {
    // The event's stream keeps the error for the next wait.
  }
  clSetUserEventStatus(completed, CL_COMPLETE);
  clReleaseEvent(completed);
}

}  // namespace

sycl::event event_in(const sycl::context& context, const sycl::event& event) {
  cl_int error = CL_INVALID_CONTEXT;
  cl_event completed = nullptr;
  if (context.get_backend() == kOpenCL) {
    completed = clCreateUserEvent(sycl::get_native<kOpenCL>(context), &error);
  }
  if (error != CL_SUCCESS) {
    sycl::event(event).wait();
    return {};
  }
  sycl::event result =
      sycl::make_event<kOpenCL>(std::vector<cl_event>{completed}, context);
  const auto task = event_threads().submit([=] { complete_after(completed, event); });
  // No thread can be started: the calling thread waits.
  if (task == nullptr) complete_after(completed, event);
  return result;
}

void wait_for_events_across() {
  event_threads().wait_for_all();
}

}  // namespace xpurt
