// Memory for replicas on one physical device, reused in the order of the work on it.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "stream.h"

namespace xpurt {

// A piece of device memory, and the submitted work that may still use it.
struct ReplicaMemory {
  void* pointer = nullptr;
  size_t bytes = 0;  // rounded
  MemoryUses uses;
};

// Not thread-safe: its owner locks.
class ReplicaPool {
 public:
  explicit ReplicaPool(const PhysicalDevice& device) : device_(device) {}

  // Memory whose next use waits for the uses that it comes with; a null pointer if the
  // device has none.
  ReplicaMemory take(size_t bytes);
  void give_back(ReplicaMemory memory);

  // Frees what is cached, after waiting for the work that uses it.
  void trim();

  size_t bytes_taken() const { return bytes_taken_; }
  size_t bytes_cached() const { return bytes_cached_; }

 private:
  const PhysicalDevice& device_;
  std::multimap<size_t, ReplicaMemory> cached_;  // by rounded size
  size_t bytes_taken_ = 0;
  size_t bytes_cached_ = 0;
};

}  // namespace xpurt
