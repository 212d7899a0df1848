// The queues of a stream whose ordinal has several devices: see Note [Order by data].
#include <algorithm>

#include "device/event_status.h"
#include "host/waiting.h"
#include "stream/capture.h"
#include "stream/capture_waits.h"
#include "stream/stream.h"

namespace xpurt {

bool Stream::orders_by_data() const {
  return order_ != nullptr && !shared_ && !is_capturing(*this);
}

// A lane is a queue: a device's ordinary queue, or its queue with profiling.
size_t Stream::open_lane(size_t position) {
  const size_t home = 2 * ordinal_.home;
  if (shared_ && order_->queue(home) != nullptr) order_->touch(home);
  sycl::queue& next = open(position);
  const size_t lane = 2 * position + (timed_[position].get() == &next ? 1 : 0);
  order_->open(lane, next);
  last_ = position;
  return lane;
}

Submission Stream::queue_after(size_t position, const Uses& before, Ticket* ticket) {
  if (!orders_by_data()) {
    follow_others(before);
    return queue(position, ticket);
  }
  if (C10_UNLIKELY(waits_for_captured(*this))) refuse_to_wait_in_capture(*this);
  std::unique_lock<Mutex> lock(mutex_);
  const size_t lane = open_lane(position);
  *ticket = order_->after(lane, *this, before);
  return Submission(std::move(lock), *order_->queue(lane), submitted_);
}

void Stream::follow(const sycl::event& event) {
  std::lock_guard<Mutex> lock(mutex_);
  ++submitted_;
  if (!submit_after(event)) wait_for_end(event);
}

// The stream's work follows all of its earlier work anyway, so only uses on other
// streams matter.
void Stream::follow_others(const Uses& before) {
  for (const Use& use : before) {
    if (use.stream != this && !use.stream->has_seen(use.ticket)) follow(use.done);
  }
}

sycl::queue& Stream::joins() {
  if (!joins_) joins_ = make_queue(ordinal_.home, /*profiling=*/false);
  return *joins_;
}

// False if the host has to wait for the event.
bool Stream::submit_after(const sycl::event& event) {
  if (!order_) return order_after(tail(), {event});
  return order_->after_event(open_lane(shared_ ? ordinal_.home : last_), event);
}

std::vector<uint64_t> Stream::lane_numbers() {
  if (!order_) return {};
  std::lock_guard<Mutex> lock(mutex_);
  return order_->numbers();
}

// After a wait for `use`, which is this stream's.
void Stream::record_finished(const Use& use) {
  if (!order_) return;
  std::lock_guard<Mutex> lock(mutex_);
  order_->queue(use.ticket.lane)->throw_asynchronous();
  order_->finished(use.ticket);
  // A join may still wait for finished work: see Note [Exit].
  const bool joined = !joins_ || is_empty(*joins_);
  if (joined && order_->all_finished()) mark_finished(submitted_.load());
}

void Stream::wait_for(const Uses& uses) {
  const bool all = !orders_by_data();
  if (all) wait();
  if (!order_ || is_exiting()) return;  // see Note [Exit]
  Uses pending = uses;
  if (!all && !idle()) {
    std::lock_guard<Mutex> lock(mutex_);
    order_->add_gate(*this, &pending);
  }
  pending.drop_finished();
  if (!pending.empty()) {
    const auto finished = [pending] {
      return std::all_of(pending.begin(), pending.end(),
                         [](const Use& use) { return xpurt::is_over(use.done); });
    };
    const auto wait = [pending, this] {
      for (const Use& use : pending) {
        try {
          wait_for_end(use.done);
        } catch (const std::exception&) {
          const size_t position =
              use.stream == this ? use.ticket.lane / 2 : ordinal_.home;
          keep_error(position, std::current_exception());
        }
      }
    };
    wait_for_device(finished, wait);
    for (const Use& use : pending) use.stream->record_finished(use);
  }
  rethrow();
}

}  // namespace xpurt
