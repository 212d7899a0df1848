#include "host/worker.h"

#include <pthread.h>

#include <stdexcept>
#include <thread>
#include <utility>

namespace xpurt {

class Worker::Task {
 public:
  explicit Task(std::function<void()> body) : body(std::move(body)) {}

  std::function<void()> body;
  bool done = false;  // requires the worker's mutex, like `error`
  std::exception_ptr error;
};

bool start_thread(const char* name, std::function<void()> body) noexcept {
  try {
    std::thread([name, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name);
      body();
    }).detach();
    return true;
  } catch (const std::exception&) {  // std::system_error; std::bad_alloc
    return false;
  }
}

Worker::Handle Worker::submit(std::function<void()> body) {
  auto task = std::make_shared<Task>(std::move(body));
  std::lock_guard<Mutex> lock(mutex_);
  if (stopped_) return nullptr;
  if (idle_ <= queued_.size()) {
    if (threads_ < most_threads_ && start_thread(name_, [this] { work(); })) {
      ++threads_;
    } else if (threads_ == 0 || most_threads_ == kNoLimit) {
      return nullptr;
    }
  }
  queued_.push_back(task);
  added_.notify_one();
  return task;
}

void Worker::wait(const Handle& task) {
  std::unique_lock<Mutex> lock(mutex_);
  finished_.wait(lock, [&] { return task->done; });
  lock.unlock();
  if (task->error) std::rethrow_exception(task->error);
}

void Worker::wait(const Handle& task, std::chrono::milliseconds interval,
                  const std::function<void()>& meanwhile) {
  std::unique_lock<Mutex> lock(mutex_);
  while (!finished_.wait_for(lock, interval, [&] { return task->done; })) {
    lock.unlock();
    meanwhile();
    lock.lock();
  }
  lock.unlock();
  if (task->error) std::rethrow_exception(task->error);
}

void Worker::wait_for_all() {
  std::unique_lock<Mutex> lock(mutex_);
  finished_.wait(lock, [this] { return queued_.empty() && running_ == 0; });
}

void Worker::stop(std::chrono::milliseconds patience) {
  std::deque<Handle> dropped;
  std::unique_lock<Mutex> lock(mutex_);
  stopped_ = true;
  dropped.swap(queued_);
  const auto error = std::make_exception_ptr(
      std::runtime_error(std::string(name_) + " was stopped before this task began"));
  for (const Handle& task : dropped) finish(task, error);
  finished_.wait_for(lock, patience, [this] { return running_ == 0; });
}

// Requires the mutex.
void Worker::finish(const Handle& task, std::exception_ptr error) {
  task->error = std::move(error);
  task->done = true;
  finished_.notify_all();
}

void Worker::work() {
  std::unique_lock<Mutex> lock(mutex_);
  for (;;) {
    ++idle_;
    added_.wait(lock, [this] { return !queued_.empty(); });
    --idle_;
    Handle task = std::move(queued_.front());
    queued_.pop_front();
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task->body();
    } catch (...) {
      error = std::current_exception();
    }
    // What the body holds, such as events of the driver, is released before the task
    // counts as done.
    task->body = nullptr;
    lock.lock();
    --running_;
    finish(task, std::move(error));
    // `task` is destroyed at the end of the iteration, or by its waiting thread.
  }
}

}  // namespace xpurt
