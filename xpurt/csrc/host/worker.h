// Threads of our own, and how work is handed to them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace xpurt {

// Starts a thread that nobody joins; false where the system gives no more threads.
// `name`, of at most 15 characters, is what debuggers and `top -H` show.
bool start_thread(const char* name, std::function<void()> body) noexcept;

// Note [Background threads]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// Three kinds of tasks run in threads of our own, and each kind has its Worker:
//
// | threads       | task                                               | at a time  |
// |---------------|----------------------------------------------------|------------|
// | "xpurt-wait"  | waits in the driver for somebody else: waiting.cpp | no limit   |
// | "xpurt-event" | completes an event of one context after an event   | up to 16   |
// |               | of another one: events_across.cpp                  |            |
// | "xpurt-build" | builds a kernel: build_queue.cpp                   | one        |
//
// The kinds are apart because a task may block for as long as a task of another kind
// needs to begin. A wait lasts as long as the work that it waits for, and that work may
// depend on an event that an "xpurt-event" thread completes. A build takes up to half a
// second, and needs the GIL.
//
// What keeps the tasks of one kind from waiting for each other in a circle:
// - waits: each has a thread of its own, and a wait for which the system has no thread
//   is done by the thread that asks for it;
// - events: a task waits only for work that was submitted before it, and tasks begin in
//   the order of their submission. So the oldest task can always end, and a limit on
//   the number of threads does no harm;
// - builds: a build waits for the GIL, and for a build in another thread, which waits
//   for the GIL. Nobody waits for a build while holding the GIL.
//
// A thread is started when a task finds none idle, and then kept: to start one takes
// longer than most waits. Nobody joins the threads, and workers are leaked: see Note
// [Leaked on purpose]. At exit, what has to be over before the driver ends is waited
// for: wait_for_all() for the events (see Note [Exit]), stop() for the builds (see Note
// [Builds in the background]). A forked child has none of these threads and needs none:
// they exist only where a device was used, and such a process's child cannot use xpu.
class Worker {
 public:
  static constexpr size_t kNoLimit = SIZE_MAX;
  class Task;
  using Handle = std::shared_ptr<Task>;

  // With `most_threads` threads busy, tasks wait for their turn; without a limit none
  // ever does.
  explicit Worker(const char* name, size_t most_threads)
      : name_(name), most_threads_(most_threads) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Has a thread run `body`. nullptr where there is no thread for it, or after stop():
  // then it is not run at all.
  Handle submit(std::function<void()> body);

  // Returns when the task is over; throws what it threw.
  void wait(const Handle& task);

  // The same. Calls `meanwhile` once per `interval`, without a lock. If that throws,
  // the wait ends, and the task goes on.
  void wait(const Handle& task, std::chrono::milliseconds interval,
            const std::function<void()>& meanwhile);

  // Returns when all tasks that were submitted are over.
  void wait_for_all();

  // Takes no more tasks, and drops those that have not begun: who waits for one gets an
  // exception. Waits for those that have begun, but no longer than `patience`.
  void stop(std::chrono::milliseconds patience);

 private:
  void work();
  void finish(const Handle& task, std::exception_ptr error);

  const char* const name_;
  const size_t most_threads_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable finished_;
  std::deque<Handle> queued_;
  size_t running_ = 0;
  size_t threads_ = 0;
  size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace xpurt
