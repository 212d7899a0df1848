// Kernels that are built in the background.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "device/device.h"
#include "host/mutex.h"
#include "host/worker.h"

namespace xpurt {

// Note [Builds in the background]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A kernel takes 30 to 500 ms to build, and under AUTO no op has to wait for a build:
// an op that a second device cannot run yet runs at home, by PyTorch's CPU kernel if
// there is one. The thread takes the GIL to get the source, as every builder does, so
// no thread may wait for it while holding the GIL. It has the priority of other
// threads: with a lower priority, on a busy machine, it would hold the driver's locks
// for minutes.
//
// The driver must not be inside a build when it is torn down. Python calls stop() when
// it begins to exit, while threads can still get the GIL.
class BuildQueue {
 public:
  using Key = std::pair<const PhysicalDevice*, std::string>;
  using Build = std::function<void(const PhysicalDevice&, const std::string&)>;

  explicit BuildQueue(Build build) : build_(std::move(build)) {}

  // True if the build is underway or queued. False if it failed before, or after
  // stop(). False also if there is no thread: then the caller builds the kernel itself.
  bool push(const PhysicalDevice& device, const std::string& key);

  size_t pending();

  void stop();

 private:
  void build(const Key& key);

  const Build build_;
  Worker worker_{"xpurt-build", 1};
  Mutex mutex_{Rank::build_queue};
  std::set<Key> known_;  // waiting, or being built
  std::set<Key> failed_;
  bool stopped_ = false;
};

}  // namespace xpurt
