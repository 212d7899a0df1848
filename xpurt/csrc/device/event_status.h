// Queries the driver whether submitted work has ended.
#pragma once

#include <sycl/sycl.hpp>

#include <optional>

namespace xpurt {

// Note [Ask twice]
// ~~~~~~~~~~~~~~~~
// Work that waits for another context's event is submitted to the driver later, by a
// thread of the SYCL runtime. That thread first stores the driver's event in the SYCL
// event, and then drops its own record of the command. A query that reads the driver's
// event before the first step, and the record after the second, reports the work as
// complete. A second query reads the driver's event.
//
// Note [Failed work]
// ~~~~~~~~~~~~~~~~~~
// The driver's status of failed work is an error code. SYCL 2020 has no value for it,
// and the SYCL runtime passes the code on as the event's status, without an exception
// (libsycl 9). Compared with `complete` alone, failed work was pending forever:
// Event.query() returned false, and its memory was never free again. So a status that
// SYCL does not define counts as failed; wait() then throws with the driver's reason.
//
// An exception is another case: the query itself failed, for example as the host has no
// memory left. It shows nothing about the work, which may still use memory.
enum class WorkState { pending, complete, failed };

inline WorkState state_of(const sycl::event& event) {
  using Status = sycl::info::event_command_status;
  constexpr int kQueued = 3;  // in the unified runtime, not in SYCL
  const auto look = [&] {
    return event.get_info<sycl::info::event::command_execution_status>();
  };
  Status status = look();
  if (status == Status::complete) status = look();
  if (status == Status::complete) return WorkState::complete;
  const bool is_pending = status == Status::submitted || status == Status::running ||
                          status == Status::ext_oneapi_unknown ||
                          static_cast<int>(status) == kQueued;
  return is_pending ? WorkState::pending : WorkState::failed;
}

// Throws sycl::exception if the work failed, or the query.
inline bool is_complete(const sycl::event& event) {
  const WorkState state = state_of(event);
  if (state == WorkState::failed) sycl::event(event).wait();
  return state != WorkState::pending;
}

// Whether the work no longer accesses memory: it is complete, or has failed.
inline bool is_over(const sycl::event& event) {
  try {
    return state_of(event) != WorkState::pending;
  } catch (const sycl::exception&) {
    return false;
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

// Throws sycl::exception if the queue's last work failed: it would never be empty.
inline bool is_empty(const sycl::queue& queue) {
  if (queue.ext_oneapi_empty() && queue.ext_oneapi_empty()) return true;
  const std::optional<sycl::event> last = queue.ext_oneapi_get_last_event();
  return last.has_value() && is_complete(*last);
}

}  // namespace xpurt
