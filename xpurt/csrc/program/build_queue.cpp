#include "program/build_queue.h"

#include <chrono>

namespace xpurt {
namespace {

// The wait at the end of the process. A build takes half a second, but twenty times as
// long on a machine with ten busy processes per core. A thread that hangs in a build is
// abandoned: the process may then crash at its end, when the driver is torn down.
constexpr auto kStopTimeout = std::chrono::seconds(60);

}  // namespace

bool BuildQueue::push(const PhysicalDevice& device, const std::string& key) {
  std::lock_guard<Mutex> lock(mutex_);
  const Key wanted{&device, key};
  if (stopped_ || failed_.count(wanted) != 0) return false;
  if (!known_.insert(wanted).second) return true;
  if (worker_.submit([this, wanted] { build(wanted); }) != nullptr) return true;
  known_.erase(wanted);
  return false;  // there is no thread: the caller builds it
}

size_t BuildQueue::pending() {
  std::lock_guard<Mutex> lock(mutex_);
  return known_.size();
}

void BuildQueue::stop() {
  {
    std::lock_guard<Mutex> lock(mutex_);
    stopped_ = true;
  }
  worker_.stop(kStopTimeout);
}

void BuildQueue::build(const Key& key) {
  bool failed = false;
  try {
    build_(*key.first, key.second);
  } catch (...) {
    failed = true;  // the next caller builds it, and gets the error
  }
  std::lock_guard<Mutex> lock(mutex_);
  known_.erase(key);
  if (failed) failed_.insert(key);
}

}  // namespace xpurt
