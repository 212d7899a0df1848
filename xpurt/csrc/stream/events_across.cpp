#include "stream/events_across.h"

#include <CL/cl.h>

#include <functional>
#include <vector>

#include "device/device.h"
#include "host/worker.h"

namespace xpurt {
namespace {

// Note [Events of another context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A driver accepts only events of its own context: a barrier with others throws. The
// SYCL runtime can handle such dependencies: it holds the command back, and submits it
// once the event is complete. But its thread then cleans up a record that another
// thread may be cleaning up at the same time (libsycl 9, seen as a crash in
// cleanupCommand within some thousand ops). So the queue waits for an event of its own
// context, an OpenCL user event, which a thread of ours completes after it has waited
// for the other event. Where a driver runs kernels in the threads that wait, that
// thread also works on what it waits for: see Note [One waiting thread for each
// device].
//
// The thread waits in the driver, and not in sycl::event::wait(). That holds the SYCL
// runtime's graph lock while it waits for what a command depends on. A thread that
// submits a barrier needs the same lock, so that work which the first thread waits for
// is never submitted (libsycl 9, seen once as a hang of three threads).
//
// The threads take the events in the order of submission: see Note [Background
// threads].
constexpr size_t kMaxThreads = 16;

Worker& event_threads() {
  static auto* const leaked = new Worker("xpurt-event", kMaxThreads);
  return *leaked;
}

// Waits for an event. An error of the awaited work stays with its stream until the next
// wait.
std::function<void()> waits_for(const sycl::event& event) {
  if (event.get_backend() != kOpenCL) {
    return [awaited = event]() mutable {
      try {
        awaited.wait();
      } catch (const sycl::exception&) {
      }
    };
  }
  return [awaited = sycl::get_native<kOpenCL>(event)] {
    for (const cl_event each : awaited) {
      if (each == nullptr) continue;  // the runtime has none: it is complete
      clWaitForEvents(1, &each);
      clReleaseEvent(each);
    }
  };
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
  const auto complete = [completed, wait = waits_for(event)] {
    wait();
    clSetUserEventStatus(completed, CL_COMPLETE);
    clReleaseEvent(completed);
  };
  // No thread can be had: this one waits.
  if (event_threads().submit(complete) == nullptr) complete();
  return result;
}

void wait_for_events_across() {
  event_threads().wait_for_all();
}

}  // namespace xpurt
