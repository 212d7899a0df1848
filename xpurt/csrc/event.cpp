#include "event.h"

#include <c10/util/Exception.h>

#include "event_status.h"
#include "waiting.h"

namespace xpurt {
namespace {

using sycl::info::event_profiling::command_end;

}  // namespace

void Event::check_mapping() const {
  if (in_bad_fork()) placement();  // throws; the driver would never answer
  TORCH_CHECK(epoch_ == placement_epoch(),
              "the event was recorded under an xpu mapping that has been replaced. "
              "Record it again.");
}

void Event::record(Stream& stream) {
  event_ = stream.record();
  if (timed_) stamp_ = stream.stamp(event_);
  epoch_ = placement_epoch();
}

void Event::block(Stream& stream) const {
  check_mapping();
  if (!is_complete(event_)) stream.wait_event(event_);
}

bool Event::query() const {
  check_mapping();
  return is_complete(event_);
}

void Event::synchronize() const {
  check_mapping();
  if (is_complete(event_)) return;
  sycl::event event = event_;
  wait_for_device([event] { return is_complete(event); },
                  [event]() mutable { event.wait(); });
}

double Event::elapsed_ms(const Event& end) const {
  check_mapping();
  end.check_mapping();
  TORCH_CHECK_VALUE(stamp_ && end.stamp_,
                    "Both events must be created with argument 'enable_timing=True'.");
  // The stamps end some microseconds after the events that they measure.
  for (sycl::event stamp : {*stamp_, *end.stamp_}) stamp.wait();
  const uint64_t from = stamp_->get_profiling_info<command_end>();
  const uint64_t to = end.stamp_->get_profiling_info<command_end>();
  return static_cast<double>(static_cast<int64_t>(to - from)) * 1e-6;
}

}  // namespace xpurt
