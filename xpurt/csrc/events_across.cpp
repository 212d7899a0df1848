#include "events_across.h"

#include <CL/cl.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "waiting.h"

namespace xpurt {
namespace {

// Note [Events of another context]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A driver takes the events of its own context alone: a barrier with others throws. The
// SYCL runtime would look after what a command depends on: it keeps the command back,
// and submits it once the event has come to pass. But what its thread puts away then,
// another thread may be putting away already (libsycl 9, seen as a crash in
// cleanupCommand within some thousand ops). So the queue waits for an event of its own
// context, an OpenCL user event, which a thread of ours completes after it has waited
// for the other one. That thread also works on what it waits for, where a driver runs
// kernels in threads that wait: see Note [One waiting thread for each device].
//
// Jobs are taken in the order of submission, and an event depends on what was submitted
// before it alone, so the threads never wait for each other in a circle.
struct Job {
  std::optional<sycl::event> awaited;
  cl_event told = nullptr;
};

class Couriers {
 public:
  void send(Job job) {
    std::unique_lock<std::mutex> lock(mutex_);
    jobs_.push_back(job);
    ++pending_;
    if (idle_ < jobs_.size() && threads_ < kMostThreads &&
        start_thread([this] { work(); })) {
      ++threads_;
    }
    if (threads_ == 0) {
      // No thread can be had: this one waits, in the order of submission.
      jobs_.pop_back();
      lock.unlock();
      finish(job);
      lock.lock();
      if (--pending_ == 0) none_pending_.notify_all();
      return;
    }
    lock.unlock();
    added_.notify_one();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    none_pending_.wait(lock, [this] { return pending_ == 0; });
  }

 private:
  static constexpr size_t kMostThreads = 16;

  static void finish(Job& job) {
    try {
      job.awaited->wait();
    } catch (const sycl::exception&) {
      // Its stream keeps the error for the next wait.
    }
    clSetUserEventStatus(job.told, CL_COMPLETE);
    clReleaseEvent(job.told);
  }

  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      ++idle_;
      added_.wait(lock, [this] { return !jobs_.empty(); });
      --idle_;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      finish(job);
      job = {};
      lock.lock();
      if (--pending_ == 0) none_pending_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable none_pending_;
  std::deque<Job> jobs_;
  size_t pending_ = 0;  // sent, and not put away
  size_t idle_ = 0;
  size_t threads_ = 0;
};

// Leaked: see Note [Leaked on purpose].
Couriers& couriers() {
  static auto* const leaked = new Couriers;
  return *leaked;
}

}  // namespace

sycl::event event_in(const sycl::context& context, const sycl::event& event) {
  cl_int error = CL_INVALID_CONTEXT;
  cl_event told = nullptr;
  if (context.get_backend() == kOpenCL) {
    told = clCreateUserEvent(sycl::get_native<kOpenCL>(context), &error);
  }
  if (error != CL_SUCCESS) {
    sycl::event(event).wait();
    return {};
  }
  sycl::event result = sycl::make_event<kOpenCL>(std::vector<cl_event>{told}, context);
  couriers().send({event, told});
  return result;
}

void wait_for_couriers() {
  couriers().wait();
}

}  // namespace xpurt
