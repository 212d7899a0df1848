// Memory for replicas on one physical device, reused in stream order.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "stream.h"

namespace xpurt {

// A piece of device memory, and the streams whose submitted work may still use it.
struct ReplicaMemory {
  void* pointer = nullptr;
  size_t bytes = 0;  // rounded
  std::vector<Stream*> used_by;

  void use(Stream& stream);
};

// Not thread-safe: its owner locks.
class ReplicaPool {
 public:
  explicit ReplicaPool(const PhysicalDevice& device) : device_(device) {}

  // Memory that `stream` can use at once; a null pointer if the device has none.
  ReplicaMemory take(size_t bytes, Stream& stream);
  void give_back(ReplicaMemory memory);

  // Frees what is cached, after waiting for the work that uses it.
  void trim();

  size_t bytes_taken() const { return bytes_taken_; }

 private:
  const PhysicalDevice& device_;
  std::multimap<size_t, ReplicaMemory> cached_;  // by rounded size
  size_t bytes_taken_ = 0;
};

}  // namespace xpurt
