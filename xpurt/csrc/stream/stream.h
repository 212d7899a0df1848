// PyTorch streams as in-order SYCL queues, one per physical device of an ordinal.
#pragma once

#include <c10/core/Stream.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"
#include "host/api.h"
#include "host/mutex.h"
#include "stream/stream_order.h"

namespace xpurt {

// One submission to a queue of a stream. It holds the stream's mutex, so that no other
// thread submits. Its destructor counts the submission, as a rule at the end of the
// full expression.
class Submission {
 public:
  Submission(std::unique_lock<Mutex> lock, sycl::queue& queue,
             std::atomic<uint64_t>& count)
      : lock_(std::move(lock)), queue_(queue), count_(count) {}
  ~Submission() { ++count_; }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  sycl::queue* operator->() const { return &queue_; }
  sycl::queue& operator*() const { return queue_; }

 private:
  std::unique_lock<Mutex> lock_;
  sycl::queue& queue_;
  std::atomic<uint64_t>& count_;
};

class Stream {
 public:
  Stream(const Ordinal& ordinal, c10::Stream id, int priority);
  // A stream around a queue that other code made for the home device.
  Stream(const Ordinal& ordinal, c10::Stream id, const sycl::queue& external);

  const Ordinal& ordinal() const { return ordinal_; }
  c10::Stream id() const { return id_; }
  int priority() const { return priority_; }

  // The queue of the device at `position` of the ordinal, to submit to, as in
  // `stream.queue(p)->memcpy(...)`. The submission runs after everything submitted to
  // this stream before, on any device.
  Submission queue(size_t position, Ticket* ticket = nullptr);
  Submission home_queue() { return queue(ordinal_.home); }

  // The same for work that names the memory it uses: of the work on other devices, it
  // waits only for `before`. See Note [Order by data].
  Submission queue_after(size_t position, const Uses& before, Ticket* ticket);

  // False where all work keeps total order.
  bool orders_by_data() const;

  // Whether a wait on the host has covered that submission.
  bool has_seen(const Ticket& ticket) const {
    return order_ == nullptr ? idle() : order_->is_finished(ticket);
  }

  // The home device's queue for code outside of xpurt, which may submit to it at any
  // time. From now on the stream never counts as idle.
  sycl::queue& shared_queue();

  // False if work may be pending. A flag, so that host-side ops need no driver call if
  // nothing was submitted since the last wait.
  bool idle() const { return was_waited_for() && !shared_; }

  // Whether a wait on the host has covered everything that xpurt submitted.
  bool was_waited_for() const { return finished_.load() == submitted_.load(); }

  // True if everything submitted has finished. Queries the driver.
  bool query();

  // Whether work at `position` carries its times now: only while device work is
  // recorded.
  bool is_timed(size_t position) const;

  // Waits for everything submitted. Releases the GIL during the wait. Throws an
  // asynchronous error once.
  XPURT_API void wait();

  // The same. Returns, by position, what `clock` returned when the device was done.
  std::vector<double> wait_for_each(double (*clock)());

  // Waits for these uses, and for work that keeps total order. Waits for everything if
  // nothing is ordered by data. Throws as wait() does.
  void wait_for(const Uses& uses);

  // An event that completes when everything submitted so far has completed.
  sycl::event record();

  // An event with profiling information. It ends when `recorded`, an event of this
  // stream, ends.
  sycl::event stamp(const sycl::event& recorded);

  // Work submitted from now on starts after `event`.
  void wait_event(const sycl::event& event);

  // The same after the uses by other streams. For callers that hold a lock: keeps the
  // GIL, and cannot be interrupted.
  void follow_others(const Uses& before);

  // Keeps an error of the host that the stream's pending work depends on. The next wait
  // throws it.
  void fail(std::exception_ptr error) { keep_error(ordinal_.home, std::move(error)); }

  // A word that kernels on the device at `position` write a number to if an index is
  // out of range. The next wait passes the number to the function of set_fault(), which
  // throws.
  int32_t* fault_word(size_t position);

 private:
  std::unique_ptr<sycl::queue> make_queue(size_t position, bool profiling);
  sycl::queue& open(size_t position);
  struct OpenQueue {
    sycl::queue* queue;
    size_t position;
  };
  sycl::queue& switch_to(size_t position);
  sycl::queue& tail();
  // stream_lanes.cpp
  size_t open_lane(size_t position);
  void follow(const sycl::event& event);
  sycl::queue& joins();
  bool submit_after(const sycl::event& event);
  std::vector<uint64_t> lane_numbers();
  void record_finished(const Use& use);
  // stream_queries.cpp
  std::vector<OpenQueue> open_queues();
  bool is_shared(const OpenQueue& queue) const;
  void keep_shared_end(const sycl::event& end);
  bool own_work_may_be_pending();
  bool is_over(const OpenQueue& queue, std::optional<sycl::event>* end);
  std::vector<OpenQueue> pending_queues(std::vector<OpenQueue>* over);
  bool drained(std::optional<sycl::event>* end);
  void finish(const std::function<void(size_t)>& ended = {});
  void keep_error(size_t position, std::exception_ptr error);
  void mark_finished(uint64_t covered);
  void rethrow();
  void raise_faults();

  const Ordinal& ordinal_;
  c10::Stream id_;
  int priority_;
  Mutex mutex_{Rank::stream};
  std::vector<std::unique_ptr<sycl::queue>> queues_;  // by position, made on use
  std::unique_ptr<sycl::queue> stamps_;               // with profiling; see stamp()
  std::vector<std::unique_ptr<sycl::queue>> timed_;   // see Note [Recorded work]
  std::unique_ptr<sycl::queue> joins_;                // see StreamOrder::end()
  std::optional<sycl::event> shared_end_;             // see Note [Queries of a queue]
  uint64_t submitted_before_end_ = 0;
  std::unique_ptr<StreamOrder> order_;  // of several devices
  size_t last_;                         // position used last
  sycl::queue* last_queue_ = nullptr;   // and the queue there
  std::atomic<bool> shared_{false};
  std::atomic<uint64_t> submitted_{0};  // counts submissions
  std::atomic<uint64_t> finished_{0};   // how many of them a wait has covered
  Mutex error_mutex_{Rank::stream_error};
  std::exception_ptr error_;
  size_t failed_ = 0;             // position of the device with the error
  std::vector<bool> reported_;    // by position: its error was thrown
  std::vector<int32_t*> faults_;  // by position; leaked: kernels may be in flight
  std::atomic<bool> may_fault_{false};
};

// Sets the function that throws for a number in a fault word.
void set_fault(void (*raise)(int32_t number));

// Priorities are PyTorch's: lower numbers run first. They are SYCL's hints to the
// driver, which may ignore them.
constexpr int kLowestPriority = 1;
constexpr int kNormalPriority = 0;
constexpr int kHighestPriority = -1;

// The stream object behind a c10 stream. Throws if the stream belongs to a replaced
// mapping, or if there is no such stream.
Stream& stream(c10::Stream id);

XPURT_API Stream& current_stream(c10::DeviceIndex index = -1);
c10::Stream current_stream_id(c10::DeviceIndex index = -1);
c10::Stream default_stream_id(c10::DeviceIndex index);
c10::Stream pool_stream_id(c10::DeviceIndex index, int priority);
// Equal queues give the same stream.
c10::Stream external_stream_id(c10::DeviceIndex index, const sycl::queue& queue);
c10::Stream exchange_stream(c10::Stream id);

// The streams of an ordinal on which work may be pending.
std::vector<Stream*> busy_streams(c10::DeviceIndex index);

// Waits for every stream of an ordinal, or of the whole process, including those of
// replaced mappings. Throws the first asynchronous error after all waits have ended.
void synchronize_device(c10::DeviceIndex index);
XPURT_API void synchronize_all();

}  // namespace xpurt
