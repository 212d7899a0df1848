#include "build_queue.h"

#include <chrono>

#include "waiting.h"

namespace xpurt {
namespace {

// At the end of the process. A build takes half a second at most; one that hangs is
// left behind.
constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

bool BuildQueue::push(const PhysicalDevice& device, const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Key wanted{&device, key};
  if (stopped_ || failed_.count(wanted) != 0) return false;
  // Without a thread whoever wants it builds it.
  if (!started_ && !start_thread([this] { work(); })) return false;
  started_ = true;
  if (!known_.insert(wanted).second) return true;
  waiting_.push_back(wanted);
  changed_.notify_all();
  return true;
}

size_t BuildQueue::pending() {
  std::lock_guard<std::mutex> lock(mutex_);
  return known_.size();
}

void BuildQueue::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  waiting_.clear();
  changed_.wait_for(lock, kPatience, [this] { return !busy_; });
}

void BuildQueue::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    const Key next = waiting_.front();
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    bool failed = false;
    try {
      build_(*next.first, next.second);
    } catch (...) {
      failed = true;  // whoever wants it builds it, and is told
    }
    lock.lock();
    busy_ = false;
    known_.erase(next);
    if (failed) failed_.insert(next);
    changed_.notify_all();
  }
}

}  // namespace xpurt
