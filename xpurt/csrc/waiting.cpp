#include "waiting.h"

#include <c10/util/ScopeExit.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "gil.h"
#include "recording_now.h"

namespace xpurt {
namespace {

using Clock = std::chrono::steady_clock;

// Note [Waiting in the main thread]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Python runs signal handlers in its main thread only, and a thread that is inside
// the driver's wait cannot be called back. Polling instead would cost half of the
// CPU device: a thread in the driver's wait works on the kernel it waits for (with
// two cores a kernel of 4.7 ms takes 9.3 ms while the host polls). So the main
// thread polls for as long as a handover costs, and then lets another thread wait
// inside the driver. Handing over costs 17 us, polling up to 2 us; measured on the
// OpenCL CPU device. All other threads wait in the driver themselves.
constexpr auto kPolling = std::chrono::microseconds(20);
constexpr auto kSignalInterval = std::chrono::milliseconds(20);

std::atomic<void (*)()> interrupt_check{nullptr};
std::atomic<unsigned long> main_thread{0};

struct Job {
  std::function<void()> wait;
  bool done = false;
  std::exception_ptr error;
};

// Threads that wait in the driver for others: for the main thread, and for a thread
// that waits for several devices. As many as ever wait at a time, and kept, since to
// start one takes longer than most waits. Leaked: see Note [Leaked on purpose].
class Waiters {
 public:
  void run(std::function<void()> wait) {
    const std::shared_ptr<Job> job = start(wait);
    // No thread: Ctrl-C has to wait, too.
    if (job == nullptr) return wait();
    std::unique_lock<std::mutex> lock(mutex_);
    while (!finished_.wait_for(lock, kSignalInterval, [&] { return job->done; })) {
      lock.unlock();
      interrupt_check.load()();
      lock.lock();
    }
    lock.unlock();
    if (job->error) std::rethrow_exception(job->error);
  }

  // nullptr where no thread can be had for it.
  std::shared_ptr<Job> start(const std::function<void()>& wait) {
    auto job = std::make_shared<Job>();
    job->wait = wait;
    std::lock_guard<std::mutex> lock(mutex_);
    if (idle_ <= jobs_.size() && !start_thread([this] { work(); })) return nullptr;
    jobs_.push_back(job);
    added_.notify_one();
    return job;
  }

  void finish(const Job& job) {
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [&] { return job.done; });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      ++idle_;
      added_.wait(lock, [this] { return !jobs_.empty(); });
      --idle_;
      auto job = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      try {
        job->wait();
      } catch (...) {
        job->error = std::current_exception();
      }
      lock.lock();
      job->done = true;
      finished_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable finished_;
  std::deque<std::shared_ptr<Job>> jobs_;
  size_t idle_ = 0;
};

Waiters& waiters() {
  static auto* const leaked = new Waiters;
  return *leaked;
}

bool signals_arrive_here() {
  return interrupt_check.load() != nullptr && Py_IsInitialized() &&
         static_cast<unsigned long>(pthread_self()) == main_thread.load();
}

}  // namespace

void wait_for_device(const std::function<bool()>& finished,
                     std::function<void()> wait) {
  const auto noted = c10::make_scope_exit([] {
    if (C10_UNLIKELY(records_work())) note_wait_ended();
  });
  WithoutGil released;
  if (!signals_arrive_here()) return wait();
  const auto deadline = Clock::now() + kPolling;
  do {
    if (finished()) return wait();
  } while (Clock::now() < deadline);
  waiters().run(std::move(wait));
}

void run_at_once(const std::vector<std::function<void()>>& parts) {
  if (parts.empty()) return;
  std::vector<std::shared_ptr<Job>> others;
  for (size_t i = 1; i < parts.size(); ++i) others.push_back(waiters().start(parts[i]));
  parts.front()();
  for (size_t i = 1; i < parts.size(); ++i) {
    if (others[i - 1] == nullptr) {
      parts[i]();
    } else {
      waiters().finish(*others[i - 1]);
    }
  }
}

bool start_thread(std::function<void()> body) noexcept {
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::exception&) {  // std::system_error; std::bad_alloc
    return false;
  }
}

void set_interrupt_check(void (*check)(), unsigned long thread) {
  main_thread = thread;
  interrupt_check = check;
  // The thread that forks is the main thread of the child.
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    main_thread = static_cast<unsigned long>(pthread_self());
  });
  (void)once;
}

}  // namespace xpurt
