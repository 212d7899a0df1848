#include "stream/event.h"

#include <c10/util/Exception.h>

#include "device/event_status.h"
#include "host/host_waits.h"
#include "host/waiting.h"
#include "stream/capture.h"
#include "stream/capture_waits.h"

namespace xpurt {
namespace {

using sycl::info::event_profiling::command_end;

// The result of `ask`, which queries the event. The SYCL runtime throws if its work
// failed.
template <typename Ask>
auto about_work(const Ask& ask) {
  try {
    return ask();
  } catch (const sycl::exception& error) {
    TORCH_CHECK(false,
                "work that the event marks, or waits for, failed: ", error.what(),
                ". torch.xpu.synchronize() tells more.");
  }
}

}  // namespace

void Event::check_mapping() const {
  if (in_bad_fork()) placement();  // throws; a query of the driver would hang
  TORCH_CHECK(epoch_ == placement_epoch(),
              "the event was recorded under an xpu mapping that has been replaced. "
              "Record it again.");
}

void Event::check_is_run() const {
  check_mapping();
  TORCH_CHECK(capture_ == 0,
              "the event was recorded while its stream was captured into an XPU graph, "
              "so it marks nothing that runs. Record one after replay().");
}

void Event::record(Stream& stream) {
  const bool captured = is_capturing(stream);
  if (captured && timed_) {
    refuse_in_capture("an event with enable_timing=True",
                      "recorded work has no times of its own.");
  }
  capture_ = captured ? capture_number() : 0;
  event_ = stream.record();
  if (timed_) stamp_ = stream.stamp(event_);
  epoch_ = placement_epoch();
}

void Event::block(Stream& stream) const {
  // Within its own capture, the stream's later work follows the marked work anyway.
  if (capture_ != 0 && capture_is_underway() && capture_ == capture_number()) {
    if (!is_capturing(stream)) wait_for_captured(stream);
    return;
  }
  check_is_run();
  if (about_work([&] { return is_complete(event_); })) return;
  if (is_capturing(stream)) {
    refuse_in_capture("waiting for an event of another stream",
                      "a graph holds the work of one stream.");
  }
  stream.wait_event(event_);
}

bool Event::query() const {
  check_is_run();
  return about_work([&] { return is_complete(event_); });
}

void Event::synchronize() const {
  count_host_wait();
  if (query()) return;
  sycl::event event = event_;
  about_work([&] {
    wait_for_device([event] { return is_complete(event); },
                    [event] { wait_for_end(event); });
  });
}

double Event::elapsed_ms(const Event& end) const {
  check_is_run();
  end.check_is_run();
  TORCH_CHECK_VALUE(stamp_ && end.stamp_,
                    "Both events must be created with argument 'enable_timing=True'.");
  // The stamps end some microseconds after the events that they measure.
  for (const sycl::event& stamp : {*stamp_, *end.stamp_}) wait_for_end(stamp);
  const uint64_t from = stamp_->get_profiling_info<command_end>();
  const uint64_t to = end.stamp_->get_profiling_info<command_end>();
  return static_cast<double>(static_cast<int64_t>(to - from)) * 1e-6;
}

}  // namespace xpurt
