// Memory for replicas on one physical device, reused in the order of the device's work.
#pragma once

#include <cstddef>
#include <limits>

#include "memory/block_pool.h"
#include "memory/deferred_frees.h"
#include "stream/stream.h"

namespace xpurt {

// A block of device memory, and the submitted work that may still use it.
struct ReplicaMemory {
  void* pointer = nullptr;
  size_t bytes = 0;  // rounded
  MemoryUses uses;
  Block* block = nullptr;  // in the pool that it came from
};

// Note [Memory for replicas]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~
// Replicas are cached in the same pools of blocks as the memory of an ordinal
// (block_pool.h), with two differences:
// - A block comes back at once, even if work on it is pending. Its next user submits
//   work that waits for the pending work, on any queue: see Note [Order by data]. So
//   there is one pool for a device, not one for each stream, and no thread waits.
// - A large segment is as large as its first block. The device's memory for replicas is
//   what the replicas in use leave. A larger segment would evict some of them.
// Sizes are rounded to 512 bytes below 1 MiB, and to 2 MiB from there on.
//
// Not thread-safe: its owner locks.
class ReplicaPool {
 public:
  explicit ReplicaPool(const PhysicalDevice& device) : device_(device) {}

  // Returns memory, and the uses that its next use must wait for. A null pointer if the
  // device has no memory left.
  ReplicaMemory take(size_t bytes);
  void give_back(ReplicaMemory memory);

  // Whether take() can succeed without the driver.
  bool has_cached(size_t bytes);

  // Whether take() may succeed and leave room for results: it is not known that the
  // driver has no memory left.
  bool may_have_room(size_t bytes);

  // Frees cached segments without memory in use, after a wait for the work that uses
  // them. Returns the number of bytes freed.
  size_t trim();

  size_t bytes_taken() const { return bytes_taken_; }

 private:
  bool grow(size_t rounded);

  const PhysicalDevice& device_;
  BlockPools pools_;
  DeferredFrees pending_;  // work on free blocks
  size_t bytes_taken_ = 0;
  size_t bytes_reserved_ = 0;                          // from the driver
  size_t limit_ = std::numeric_limits<size_t>::max();  // of these, as far as is known
};

}  // namespace xpurt
