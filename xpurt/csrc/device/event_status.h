// Whether submitted work is over, asked of the driver.
#pragma once

#include <sycl/sycl.hpp>

namespace xpurt {

// Note [Ask twice]
// ~~~~~~~~~~~~~~~~
// Work that waits for another context's event is handed to the driver later, by a
// thread of the SYCL runtime, which first gives the SYCL event the driver's one and
// then forgets its own record of the command. Who looks for the first before that and
// for the second after it is told that the work is complete. A second look finds the
// driver's event.
inline bool is_complete(const sycl::event& event) {
  const auto look = [&] {
    return event.get_info<sycl::info::event::command_execution_status>() ==
           sycl::info::event_command_status::complete;
  };
  return look() && look();
}

// The same where failed work counts as complete: it will not touch memory any more.
inline bool is_over(const sycl::event& event) {
  try {
    return is_complete(event);
  } catch (const sycl::exception&) {
    return true;
  }
}

inline bool is_empty(const sycl::queue& queue) {
  return queue.ext_oneapi_empty() && queue.ext_oneapi_empty();
}

}  // namespace xpurt
