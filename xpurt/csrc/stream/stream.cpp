#include "stream/stream.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <functional>
#include <set>

#include "device/device_failure.h"
#include "device/event_status.h"
#include "host/gil.h"
#include "host/host_waits.h"
#include "host/waiting.h"
#include "stream/capture.h"
#include "stream/capture_waits.h"
#include "stream/earlier_errors.h"
#include "stream/work_recording.h"

namespace xpurt {
namespace {

// The number of errors that streams keep until a wait. It is 0 as a rule. Then a wait
// takes no lock; every op on the host begins with a wait.
std::atomic<int> errors_kept{0};

void (*raise_fault)(int32_t) = nullptr;

thread_local uint64_t errors_thrown = 0;

// The number in the word, which is 0 then. A kernel may write another meanwhile.
int32_t taken_from(int32_t* word) {
  return *word == 0 ? 0 : std::atomic_ref<int32_t>(*word).exchange(0);
}

// The fault words that kernels of graphs write to. They are checked by every stream,
// since a graph may be replayed on any. Leaked: see Note [Leaked on purpose].
Mutex captured_faults_mutex{Rank::captured_faults};
std::atomic<bool> captures_may_fault{false};
std::set<int32_t*>& captured_faults() {
  static auto* const leaked = new std::set<int32_t*>;
  return *leaked;
}

}  // namespace

uint64_t earlier_errors_thrown() noexcept {
  return errors_thrown;
}

void set_fault(void (*raise)(int32_t number)) {
  raise_fault = raise;
}

Stream::Stream(const Ordinal& ordinal, c10::Stream id, int priority)
    : ordinal_(ordinal),
      id_(id),
      priority_(priority),
      queues_(ordinal.devices.size()),
      timed_(ordinal.devices.size()),
      last_(ordinal.home),
      reported_(ordinal.devices.size()),
      faults_(ordinal.devices.size()) {
  const size_t devices = ordinal.devices.size();
  if (devices > 1) order_ = std::make_unique<StreamOrder>(2 * devices);
}

Stream::Stream(const Ordinal& ordinal, c10::Stream id, const sycl::queue& external)
    : Stream(ordinal, id, kNormalPriority) {
  queues_[ordinal.home] = std::make_unique<sycl::queue>(external);
  last_queue_ = queues_[ordinal.home].get();
  shared_ = true;
}

std::unique_ptr<sycl::queue> Stream::make_queue(size_t position, bool profiling) {
  namespace property = sycl::property::queue;
  namespace priority = sycl::ext::oneapi::property::queue;
  const PhysicalDevice& device = *ordinal_.devices[position];
  // Called in the waiting thread: see Stream::finish().
  auto keep_first = [this, position](sycl::exception_list errors) {
    if (errors.size() != 0) keep_error(position, *errors.begin());
  };
  const auto made = [&](auto... of_priority) {
    const sycl::property_list properties =
        profiling ? sycl::property_list{property::in_order{},
                                        property::enable_profiling{}, of_priority...}
                  : sycl::property_list{property::in_order{}, of_priority...};
    return std::make_unique<sycl::queue>(device.context, device.device, keep_first,
                                         properties);
  };
  if (priority_ > kNormalPriority) return made(priority::priority_low{});
  if (priority_ < kNormalPriority) return made(priority::priority_high{});
  return made();
}

bool Stream::is_timed(size_t position) const {
  return records_work() && !is_capturing(*this) &&
         !(shared_ && position == ordinal_.home) &&
         ordinal_.devices[position]->device.has(sycl::aspect::queue_profiling);
}

sycl::queue& Stream::open(size_t position) {
  const bool timed = is_timed(position);
  auto& slot = (timed ? timed_ : queues_)[position];
  if (!slot) slot = make_queue(position, timed);
  return *slot;
}

sycl::queue& Stream::switch_to(size_t position) {
  sycl::queue& next = open(position);
  if (&next != last_queue_) {
    if (last_queue_ != nullptr && !idle()) {
      sycl::event before = last_queue_->ext_oneapi_submit_barrier();
      // Keeps the GIL: taking it back while holding the mutex could deadlock.
      if (!order_after(next, {before})) wait_for_end(before);
    }
    last_ = position;
    last_queue_ = &next;
  }
  return next;
}

// The queue whose end is the end of the stream. It is the home device's queue if other
// code submits to that queue too; otherwise it is the queue used last.
sycl::queue& Stream::tail() {
  const size_t position = shared_ ? ordinal_.home : last_;
  if (!order_) return switch_to(position);
  const size_t lane = open_lane(position);
  order_->after_all(lane);
  return *order_->queue(lane);
}

Submission Stream::queue(size_t position, Ticket* ticket) {
  if (C10_UNLIKELY(waits_for_captured(*this))) refuse_to_wait_in_capture(*this);
  std::unique_lock<Mutex> lock(mutex_);
  if (order_) {
    const size_t lane = open_lane(position);
    const Ticket made = order_->after_all(lane);
    if (ticket != nullptr) *ticket = made;
    return Submission(std::move(lock), *order_->queue(lane), submitted_);
  }
  sycl::queue& next = switch_to(position);
  return Submission(std::move(lock), next, submitted_);
}

sycl::queue& Stream::shared_queue() {
  shared_ = true;  // set first: from now on the stream keeps this queue
  return *home_queue();
}

void Stream::mark_finished(uint64_t covered) {
  uint64_t before = finished_.load();
  while (before < covered && !finished_.compare_exchange_weak(before, covered)) {
  }
}

void Stream::keep_error(size_t position, std::exception_ptr error) {
  std::lock_guard<Mutex> lock(error_mutex_);
  if (error_ || reported_[position]) return;
  error_ = std::move(error);
  failed_ = position;
  ++errors_kept;
}

// Note [One waiting thread for each device]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A driver for CPUs runs kernels in the threads that wait for them, and in threads of
// its own. With one compute unit it has one thread of its own, which serves one queue
// after the other. Two kernels of 64 ms on two such devices end after 130 ms if one
// thread waits for the first and then for the second, and after 68 ms if each has its
// own waiting thread. On devices that run by themselves the other thread just sleeps.
void Stream::finish(const std::function<void(size_t)>& ended) {
  const auto report_end = [&](const OpenQueue& each) {
    if (ended && each.queue != joins_.get()) ended(each.position);
  };
  const auto finish_queue = [&](const OpenQueue& each) {
    try {
      wait_for_end(*each.queue);
    } catch (const std::exception&) {
      keep_error(each.position, std::current_exception());
    }
    report_end(each);
  };
  std::vector<OpenQueue> over;
  const std::vector<OpenQueue> pending = pending_queues(order_ ? &over : nullptr);
  for (const OpenQueue& each : over) {
    each.queue->throw_asynchronous();
    report_end(each);
  }
  if (!order_) {
    for (const OpenQueue& each : pending) finish_queue(each);
    return;
  }
  std::vector<std::function<void()>> waits;
  for (const OpenQueue& each : pending) {
    waits.emplace_back([&finish_queue, &each] { finish_queue(each); });
  }
  run_at_once(waits);
}

void Stream::wait() {
  count_host_wait();
  if (is_exiting()) return;  // see Note [Exit]
  refuse_to_wait_in_capture(*this);
  if (!idle()) {
    // Work that another thread submits meanwhile may or may not be covered. The next
    // call waits for it.
    const uint64_t covered = submitted_.load();
    const std::vector<uint64_t> numbers = lane_numbers();
    wait_for_device(
        [this, end = std::optional<sycl::event>()]() mutable { return drained(&end); },
        [this] { finish(); });
    if (order_) order_->finished(numbers);
    mark_finished(covered);
  }
  rethrow();
}

std::vector<double> Stream::wait_for_each(double (*clock)()) {
  std::vector<double> ends(ordinal_.devices.size(), 0.0);
  Mutex mutex{Rank::stream_ends};
  {
    const WithoutGil released;
    finish([&](size_t position) {
      std::lock_guard<Mutex> lock(mutex);
      ends[position] = std::max(ends[position], clock());
    });
  }
  wait();
  return ends;
}

int32_t* Stream::fault_word(size_t position) {
  std::lock_guard<Mutex> lock(error_mutex_);
  int32_t*& word = faults_[position];
  if (word == nullptr) {
    const PhysicalDevice& device = *ordinal_.devices[position];
    word = sycl::malloc_host<int32_t>(1, device.context);
    TORCH_CHECK_WITH(OutOfMemoryError, word != nullptr, device.name,
                     " has no host memory left for 4 bytes");
    *word = 0;
    may_fault_ = true;
  }
  if (is_capturing(*this)) {
    std::lock_guard<Mutex> of_captures(captured_faults_mutex);
    captured_faults().insert(word);
    captures_may_fault = true;
  }
  return word;
}

void Stream::raise_faults() {
  int32_t found = 0;
  {
    std::lock_guard<Mutex> lock(error_mutex_);
    for (int32_t* word : faults_) {
      if (word == nullptr) continue;
      if (const int32_t number = taken_from(word)) found = number;
    }
  }
  if (captures_may_fault.load()) {
    std::lock_guard<Mutex> lock(captured_faults_mutex);
    for (int32_t* word : captured_faults()) {
      if (const int32_t number = taken_from(word)) found = number;
    }
  }
  if (found == 0) return;
  ++errors_thrown;
  raise_fault(found);
}

void Stream::rethrow() {
  if (may_fault_.load() || captures_may_fault.load()) raise_faults();
  if (C10_LIKELY(errors_kept.load() == 0)) return;
  std::exception_ptr error;
  size_t position = 0;
  {
    std::lock_guard<Mutex> lock(error_mutex_);
    std::swap(error, error_);
    position = failed_;
    // A device that is no longer used keeps failing; its error is thrown once only.
    if (error && position != ordinal_.home) reported_[position] = true;
  }
  if (!error) return;
  --errors_kept;
  ++errors_thrown;
  const PhysicalDevice& device = *ordinal_.devices[position];
  try {
    std::rethrow_exception(error);
  } catch (const c10::DistBackendError&) {
    throw;  // names its collective: see Stream::fail()
  } catch (const std::exception& reason) {
    const bool elsewhere = position != ordinal_.home;
    const std::string said =
        c10::str("work submitted earlier to ", id_, " failed on ",
                 elsewhere ? device.name : "the device", ": ", reason.what(),
                 elsewhere ? ". What it had not finished is lost." : "");
    if (elsewhere) take_out(device, said);
    TORCH_CHECK(false, said);
  }
}

sycl::event Stream::record() {
  // An idle stream's event is complete from the start, unless it is part of a graph.
  if (idle() && !is_capturing(*this)) return sycl::event();
  std::lock_guard<Mutex> lock(mutex_);
  if (order_ && orders_by_data()) {
    return order_->end([this]() -> sycl::queue& { return joins(); });
  }
  const sycl::event end = tail().ext_oneapi_submit_barrier();
  if (shared_ && !is_capturing(*this)) keep_shared_end(end);
  return end;
}

// Note [Timed events]
// ~~~~~~~~~~~~~~~~~~~
// Profiling is a property of a queue and costs each submission (a barrier takes 1.7 us
// instead of 0.9), so the queues that run work do not have it. A stream opens another
// queue for its first timed event, and only for stamps: a barrier there that depends on
// the event carries the time at which the work was done. Host tasks would work too, but
// they hold up the kernels behind them by 10 us. Event callbacks keep the waiting
// thread from helping (see Note [Waiting in the main thread]). All stamps of an ordinal
// come from the home device, so they share a clock.
sycl::event Stream::stamp(const sycl::event& recorded) {
  std::lock_guard<Mutex> lock(mutex_);
  if (!stamps_) {
    const PhysicalDevice& home = ordinal_.home_device();
    TORCH_CHECK(home.device.has(sycl::aspect::queue_profiling), home.name,
                " cannot measure time. Use events with enable_timing=False.");
    stamps_ = make_queue(ordinal_.home, /*profiling=*/true);
  }
  sycl::event before = recorded;
  if (!order_after(*stamps_, {before})) wait_for_end(before);
  return stamps_->ext_oneapi_submit_barrier();
}

void Stream::wait_event(const sycl::event& event) {
  {
    std::lock_guard<Mutex> lock(mutex_);
    ++submitted_;
    if (submit_after(event)) return;
  }
  wait_for_device([] { return false; }, [event] { wait_for_end(event); });
}

}  // namespace xpurt
