// Queries the driver whether submitted work has ended.
#pragma once

#include <sycl/sycl.hpp>

namespace xpurt {

// Note [Ask twice]
// ~~~~~~~~~~~~~~~~
// Work that waits for another context's event is submitted to the driver later, by a
// thread of the SYCL runtime. That thread first stores the driver's event in the SYCL
// event, and then drops its own record of the command. A query that reads the driver's
// event before the first step, and the record after the second, reports the work as
// complete. A second query reads the driver's event.
inline bool is_complete(const sycl::event& event) {
  const auto look = [&] {
    return event.get_info<sycl::info::event::command_execution_status>() ==
           sycl::info::event_command_status::complete;
  };
  return look() && look();
}

// The same, but failed work counts as complete: it no longer accesses memory.
inline bool is_over(const sycl::event& event) {
  try {
    return is_complete(event);
  } catch (const sycl::exception&) {
    return true;
  }
}

// Note [Wait twice]
// ~~~~~~~~~~~~~~~~~
// sycl::event::wait() has the same fault. For a command that is not in the driver yet
// it takes the runtime's graph lock, and then finds the record of the command. If the
// runtime's thread submitted the command meanwhile, the record is gone, and wait()
// returns at once (libsycl 9: one wait of 100,000 for a kernel behind a host task, with
// three threads). Memory that the command still read was then used for something else.
// A queue waits for its last event in the same way. When wait() returns so, the
// driver's event is there, and a second wait uses it.
inline void wait_for_end(sycl::event event) {
  event.wait();
  if (!is_over(event)) event.wait();
}

// Errors of the queue's work are passed to its handler.
inline void wait_for_end(sycl::queue& queue) {
  queue.wait();
  queue.wait_and_throw();
}

// Whether the driver has an event for the command. Not yet for a command behind a host
// task: the SYCL runtime submits it when the host task is over. The query is not in
// SYCL 2020, and the only one that shows this.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
inline bool is_submitted(const sycl::event& event) {
  return event.get_info<sycl::info::event::reference_count>() != 0;
}
#pragma GCC diagnostic pop

inline bool is_empty(const sycl::queue& queue) {
  return queue.ext_oneapi_empty() && queue.ext_oneapi_empty();
}

}  // namespace xpurt
