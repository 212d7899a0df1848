// Events of one context, for queues of another.
#pragma once

#include <sycl/sycl.hpp>

namespace xpurt {

// An event of `context` that completes soon after `event`, an event of another context.
// Waits for `event` on a backend other than OpenCL, where no such event can be made.
sycl::event event_in(const sycl::context& context, const sycl::event& event);

// Waits until all events of event_in() are complete. Called before the driver is torn
// down.
void wait_for_events_across();

}  // namespace xpurt
