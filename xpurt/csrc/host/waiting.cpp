#include "host/waiting.h"

#include <c10/util/ScopeExit.h>
#include <pthread.h>

#include <atomic>
#include <chrono>

#include "host/blocked_wait.h"
#include "host/clock.h"
#include "host/gil.h"
#include "host/recording_now.h"
#include "host/worker.h"

namespace xpurt {
namespace {

using Clock = std::chrono::steady_clock;

// Note [Waiting in the main thread]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Python runs signal handlers in its main thread only, and a thread inside the driver's
// wait cannot be interrupted. Polling instead would cost half of the CPU device: a
// thread in the driver's wait works on the kernel that it waits for (with two cores a
// kernel of 4.7 ms takes 9.3 ms while the host polls). So the main thread polls for as
// long as a handover costs. Then another thread waits inside the driver in its place. A
// handover costs 17 us, polling up to 2 us; measured on the OpenCL CPU device. All
// other threads wait in the driver themselves.
constexpr auto kPolling = std::chrono::microseconds(20);
constexpr auto kSignalInterval = std::chrono::milliseconds(20);

// A wait of this length has blocked the thread.
constexpr auto kBlocked = std::chrono::microseconds(50);

thread_local double blocked_until = 0;

void record_wait(Clock::time_point begin) {
  if (Clock::now() - begin >= kBlocked) blocked_until = now_us();
}

std::atomic<void (*)()> interrupt_check{nullptr};
std::atomic<unsigned long> main_thread{0};

// Threads that wait in the driver for other threads: for the main thread, and for a
// thread that waits for several devices.
Worker& waits() {
  static auto* const leaked = new Worker("xpurt-wait", Worker::kNoLimit);
  return *leaked;
}

bool signals_arrive_here() {
  return interrupt_check.load() != nullptr && Py_IsInitialized() &&
         static_cast<unsigned long>(pthread_self()) == main_thread.load();
}

}  // namespace

void wait_for_device(const std::function<bool()>& finished,
                     std::function<void()> wait) {
  const auto noted = c10::make_scope_exit([begin = Clock::now()] {
    record_wait(begin);
    if (C10_UNLIKELY(records_work())) record_wait_ended();
  });
  WithoutGil released;
  if (!signals_arrive_here()) return wait();
  const auto deadline = Clock::now() + kPolling;
  do {
    if (finished()) return wait();
  } while (Clock::now() < deadline);
  const Worker::Handle task = waits().submit(wait);
  // Without another thread, Ctrl-C takes effect after the wait.
  if (task == nullptr) return wait();
  waits().wait(task, kSignalInterval, interrupt_check.load());
}

double blocked_until_us() noexcept {
  return blocked_until;
}

void run_at_once(const std::vector<std::function<void()>>& parts) {
  if (parts.empty()) return;
  std::vector<Worker::Handle> others;
  for (size_t i = 1; i < parts.size(); ++i) others.push_back(waits().submit(parts[i]));
  parts.front()();
  for (size_t i = 1; i < parts.size(); ++i) {
    if (others[i - 1] == nullptr) {
      parts[i]();
    } else {
      waits().wait(others[i - 1]);
    }
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
