// Whether the work of a stream's queues has ended.
#include <algorithm>
#include <chrono>
#include <thread>

#include "device/event_status.h"
#include "stream/capture.h"
#include "stream/capture_waits.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

// How long a query polls the barrier in a queue that was handed out: if work of xpurt
// may be pending, and if only work of other code may be.
constexpr std::chrono::microseconds kShortPatience{100};
constexpr std::chrono::microseconds kLongPatience{20'000};
constexpr std::chrono::microseconds kPollInterval{10};

}  // namespace

// Note [Queries of a queue]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// The SYCL runtime keeps the last event of a queue, and a query whether the queue is
// empty reads it without a lock. If another thread submits to the queue meanwhile, that
// event is released while it is read. The query, or the submission, then fails with
// UR_RESULT_ERROR_INVALID_EVENT (libsycl 9): four threads on a stream saw it within a
// minute, and under AUTO the healthy device was excluded for it. So a queue is queried
// under the stream's lock only, and no thread of xpurt submits meanwhile.
//
// Other code may submit at any time to a queue that was handed out. Such a queue is
// never queried. Instead a barrier is submitted to it, and the event of this barrier is
// queried: a submission is safe beside another one, and so is an event that xpurt
// holds. At most one such barrier is pending at a time.
//
// In an empty queue a barrier is complete after some microseconds, or after some
// milliseconds on a busy machine. So a query polls it for a while. It polls for a short
// time if work of xpurt was submitted after the last such barrier, which is likely to
// be pending. The answer is then no, and the next query reads the same barrier.
//
// Requires the mutex.
std::vector<Stream::OpenQueue> Stream::open_queues() {
  std::vector<OpenQueue> result;
  for (auto* queues : {&queues_, &timed_}) {
    for (size_t position = 0; position < queues->size(); ++position) {
      sycl::queue* queue = (*queues)[position].get();
      if (queue != nullptr) result.push_back({queue, position});
    }
  }
  if (joins_) result.push_back({joins_.get(), ordinal_.home});
  return result;
}

bool Stream::is_shared(const OpenQueue& each) const {
  return shared_ && each.queue == queues_[ordinal_.home].get();
}

// Requires the mutex. True also for failed work: the error is kept.
bool Stream::is_over(const OpenQueue& each, std::optional<sycl::event>* end) {
  try {
    if (!is_shared(each)) return is_empty(*each.queue);
    if (!end->has_value()) {
      // An earlier barrier that is pending shows that its queue is not empty.
      if (shared_end_ && !is_complete(*shared_end_)) return false;
      *end = each.queue->ext_oneapi_submit_barrier();
      keep_shared_end(**end);
    }
    return is_complete(**end);
  } catch (const sycl::exception&) {
    keep_error(each.position, std::current_exception());
    return true;
  }
}

// Requires the mutex. `end` completes after all work in the queue that was handed out.
void Stream::keep_shared_end(const sycl::event& end) {
  shared_end_ = end;
  submitted_before_end_ = submitted_.load();
}

bool Stream::own_work_may_be_pending() {
  std::lock_guard<Mutex> lock(mutex_);
  return !was_waited_for() && submitted_before_end_ != submitted_.load();
}

// The queues that a wait has to wait for. With `over`, queues whose work has ended are
// added there instead.
std::vector<Stream::OpenQueue> Stream::pending_queues(std::vector<OpenQueue>* over) {
  std::lock_guard<Mutex> lock(mutex_);
  std::vector<OpenQueue> pending;
  for (const OpenQueue& each : open_queues()) {
    const bool ended = over != nullptr && !is_shared(each) && is_over(each, nullptr);
    (ended ? *over : pending).push_back(each);
  }
  return pending;
}

// `end`: the barrier in the queue that was handed out, made at the first call.
bool Stream::drained(std::optional<sycl::event>* end) {
  std::lock_guard<Mutex> lock(mutex_);
  return std::ranges::all_of(open_queues(),
                             [&](const auto& each) { return is_over(each, end); });
}

bool Stream::query() {
  refuse_to_wait_in_capture(*this);
  if (idle()) return true;
  const uint64_t covered = submitted_.load();
  const std::vector<uint64_t> numbers = lane_numbers();
  std::optional<sycl::event> end;
  const auto begin = std::chrono::steady_clock::now();
  const auto patience = own_work_may_be_pending() ? kShortPatience : kLongPatience;
  while (!drained(&end)) {
    if (!end.has_value() || std::chrono::steady_clock::now() - begin > patience) {
      return false;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  // Here, as the next wait() finds the stream idle and does not query the queues.
  for (const OpenQueue& each : pending_queues(nullptr)) {
    each.queue->throw_asynchronous();
  }
  if (order_) order_->finished(numbers);
  mark_finished(covered);
  return true;
}

}  // namespace xpurt
