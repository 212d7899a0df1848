// Threads of xpurt, and the queues of their tasks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>

#include "host/mutex.h"

namespace xpurt {

// Starts a detached thread. False if the system can start no more threads. `name`, of
// at most 15 characters, is shown by debuggers and `top -H`.
bool start_thread(const char* name, std::function<void()> body) noexcept;

// Note [Background threads]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// Three kinds of tasks run in threads of xpurt, and each kind has its Worker:
//
// | threads       | task                                               | at a time  |
// |---------------|----------------------------------------------------|------------|
// | "xpurt-wait"  | waits in the driver for other threads: waiting.cpp | no limit   |
// | "xpurt-event" | completes an event of one context after an event   | up to 16   |
// |               | of another one: events_across.cpp                  |            |
// | "xpurt-build" | builds a kernel: build_queue.cpp                   | one        |
//
// The kinds are separate because a task may block for as long as a task of another kind
// needs to begin. A wait lasts as long as the work that it waits for. That work may
// depend on an event that an "xpurt-event" thread completes. A build takes up to half a
// second, and needs the GIL.
//
// The tasks of one kind cannot wait for each other in a circle:
// - waits: each has a thread of its own. If the system has no thread for a wait, the
//   calling thread does it.
// - events: a task waits only for work that was submitted before it, and tasks begin in
//   the order of their submission. So the oldest task can always end, and a limit on
//   the number of threads does no harm.
// - builds: a build waits for the GIL, and for a build in another thread, which waits
//   for the GIL. No thread waits for a build while holding the GIL.
//
// A process group of torch.distributed has a thread "xpurt-launch" of its own, without
// a Worker: see Note [Order of launches].
//
// A thread is started if a task finds none idle, and is then kept: starting a thread
// takes longer than most waits. The threads are not joined, and workers are leaked: see
// Note [Leaked on purpose]. At exit, tasks that must end before the driver ends are
// waited for: wait_for_all() for the events (see Note [Exit]), stop() for the builds
// (see Note [Builds in the background]). A forked child has none of these threads and
// needs none: they exist only in a process that used a device, and a child of such a
// process cannot use xpu.
class Worker {
 public:
  static constexpr size_t kNoLimit = SIZE_MAX;
  class Task;
  using Handle = std::shared_ptr<Task>;

  // If `most_threads` threads are busy, tasks wait in a queue. With kNoLimit no task
  // waits.
  explicit Worker(const char* name, size_t most_threads)
      : name_(name), most_threads_(most_threads) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `body` in a thread. nullptr if there is no thread for it, or after stop():
  // then `body` is not run.
  Handle submit(std::function<void()> body);

  // Returns when the task has ended. Throws what the task threw.
  void wait(const Handle& task);

  // The same. Calls `meanwhile` once per `interval`, without a lock. If that throws,
  // the wait ends, and the task continues.
  void wait(const Handle& task, std::chrono::milliseconds interval,
            const std::function<void()>& meanwhile);

  // Returns when all submitted tasks have ended.
  void wait_for_all();

  // Takes no more tasks, and drops those that have not begun: a wait for such a task
  // throws. Waits for the tasks that have begun, but no longer than `patience`.
  void stop(std::chrono::milliseconds patience);

 private:
  void work();
  void finish(const Handle& task, std::exception_ptr error);

  const char* const name_;
  const size_t most_threads_;
  Mutex mutex_{Rank::worker};
  Condition added_;
  Condition finished_;
  std::deque<Handle> queued_;
  size_t running_ = 0;
  size_t threads_ = 0;
  size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace xpurt
