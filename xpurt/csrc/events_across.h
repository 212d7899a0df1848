// Events of one context, for queues of another.
#pragma once

#include <sycl/sycl.hpp>

namespace xpurt {

// An event of `context` that comes to pass soon after `event`, which is of another one.
// Waits for it where the backend leaves no other way.
sycl::event event_in(const sycl::context& context, const sycl::event& event);

// Waits until nothing is left of event_in(): before the driver goes.
void wait_for_events_across();

}  // namespace xpurt
