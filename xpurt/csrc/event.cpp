#include "event.h"

#include <c10/util/Exception.h>

#include "gil.h"

namespace xpurt {

void Event::record(Stream& stream) {
  event_ = stream.record();
}

void Event::block(Stream& stream) const {
  if (event_) stream.wait_event(*event_);
}

bool Event::query() const {
  using sycl::info::event_command_status;
  return !event_ || event_->get_info<sycl::info::event::command_execution_status>() ==
                        event_command_status::complete;
}

void Event::synchronize() const {
  if (!event_) return;
  WithoutGil released;
  sycl::event(*event_).wait();
}

double Event::elapsed_ms(const Event&) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "event timing is not built yet");
}

}  // namespace xpurt
