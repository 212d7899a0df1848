// Builds of kernels that a thread of ours does while others go on.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "device.h"
#include "worker.h"

namespace xpurt {

// Note [Builds in the background]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A kernel takes 30 to 500 ms to build, and under AUTO no op has to wait for one: what
// a second device cannot run yet runs at home, and there by PyTorch's CPU kernel, where
// it has one. The thread is started by the first build and lives as long as the
// process. It takes the GIL for the source, as any builder does, and is never waited
// for by a thread that holds it. Its priority is that of other threads: with a lower
// one, on a machine that does much else, it would hold the driver's locks for minutes.
//
// The driver must not be inside a build when it is torn down: Python calls stop() when
// it begins to exit, before threads lose the GIL for good. A forked child has no such
// thread, and uses no device.
class BuildQueue {
 public:
  using Key = std::pair<const PhysicalDevice*, std::string>;
  using Build = std::function<void(const PhysicalDevice&, const std::string&)>;

  explicit BuildQueue(Build build) : build_(std::move(build)) {}

  // True if the build is underway or will be; false if it failed before, or nothing is
  // built any more.
  bool push(const PhysicalDevice& device, const std::string& key);

  size_t pending();

  void stop();

 private:
  void build(const Key& key);

  const Build build_;
  Worker worker_{"xpurt-build", 1};
  std::mutex mutex_;
  std::set<Key> known_;  // waiting, or being built
  std::set<Key> failed_;
  bool stopped_ = false;
};

}  // namespace xpurt
