// Memory for replicas on one physical device, reused in the order of the work on it.
#pragma once

#include <cstddef>

#include "memory/block_pool.h"
#include "memory/deferred_frees.h"
#include "stream/stream.h"

namespace xpurt {

// A piece of device memory, and the submitted work that may still use it.
struct ReplicaMemory {
  void* pointer = nullptr;
  size_t bytes = 0;  // rounded
  MemoryUses uses;
  Block* block = nullptr;  // of the pool that it is from
};

// Note [Memory for replicas]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~
// Replicas are cached in the same pools of blocks as the memory of an ordinal
// (block_pool.h), with two differences:
// - a block comes back at once, though work on it is pending. Who gets it next submits
//   work that waits for that work, on whichever queue: see Note [Order by data]. So
//   there is one pool for a device, not one for each stream, and nobody waits;
// - a large segment is as large as its first block. A device has no more memory for
//   replicas than is left after those that are in use, and what is reserved on top
//   would evict some of them.
// Sizes are rounded to 512 bytes below 1 MiB, and to 2 MiB from there on.
//
// Not thread-safe: its owner locks.
class ReplicaPool {
 public:
  explicit ReplicaPool(const PhysicalDevice& device) : device_(device) {}

  // Memory whose next use waits for the uses that it comes with; a null pointer if the
  // device has none.
  ReplicaMemory take(size_t bytes);
  void give_back(ReplicaMemory memory);

  // Whether take() needs nothing from the driver.
  bool has_cached(size_t bytes);

  // Frees what is cached and shares no segment with memory in use, after waiting for
  // the work that uses it. Returns how many bytes the device has got back.
  size_t trim();

  size_t bytes_taken() const { return bytes_taken_; }

 private:
  bool grow(size_t rounded);

  const PhysicalDevice& device_;
  BlockPools pools_;
  DeferredFrees pending_;  // work on free blocks
  size_t bytes_taken_ = 0;
};

}  // namespace xpurt
