// The device allocator of xpu tensors: c10's interface to OrdinalMemory.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
#include <utility>
#include <vector>

#include "host/api.h"

namespace xpurt {

class OrdinalMemory;
struct MemorySource;

c10::DeviceAllocator& device_allocator();

// Memory of the current device that the host may write at once: no queued work still
// uses it. See Note [When a block may be handed out again].
c10::DataPtr allocate_for_host(size_t bytes);

struct LiveMemory {
  size_t storages = 0;  // blocks handed out and not yet freed
  size_t bytes = 0;     // as requested
};
LiveMemory live_memory() noexcept;

// The ordinal whose memory contains `pointer`, or -1. Never throws.
c10::DeviceIndex device_of_pointer(const void* pointer) noexcept;

// Start and bytes of the block in use that contains `pointer`; {nullptr, 0} if there
// is none.
struct Extent {
  void* start = nullptr;
  size_t bytes = 0;
};
XPURT_API Extent block_of_pointer(const void* pointer) noexcept;

// Whether `pointer` is memory of a private pool. A replayed graph may write there.
bool is_private(const void* pointer) noexcept;

// `callback` is called with every freed block before the block can be handed out again,
// in the thread that frees it, with no lock held. It must not allocate device memory,
// and cannot be removed.
void on_free(void (*callback)(void* pointer) noexcept);

// For tests: bytes of segments that are being released to the driver.
size_t releasing_bytes(c10::DeviceIndex index);

// The share of the device's memory that this process may reserve, 0 to 1.
double memory_fraction(c10::DeviceIndex index);
void set_memory_fraction(c10::DeviceIndex index, double fraction);

// Private pools. Between begin and end, allocations on streams for which `takes` is
// true come from segments of the pool, which no other allocation uses. Each begin and
// each MemoryPool adds a user to the pool; each release removes one. The segments of a
// pool without users go back to the driver when the cache is emptied. emptyCache(pool)
// releases the free segments of one pool.
void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t pool,
                            std::function<bool(c10::Stream)> takes);
void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t pool);
void release_pool(c10::DeviceIndex index, c10::MempoolId_t pool);

// A private pool of the current device, for as long as this lives.
class MemoryPool {
 public:
  // source: where its segments come from; nullptr is the driver.
  // use_on_oom: whether allocations outside of the pool that would otherwise fail may
  // take its free blocks.
  MemoryPool(const MemorySource* source, bool made_by_user, bool use_on_oom);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  c10::MempoolId_t id() const;  // throws if the mapping has been replaced
  const MemorySource* source() const { return source_; }
  int use_count() const;

  // {0, n} for users' pools, {n, 0} for others. An id is never repeated.
  static c10::MempoolId_t new_id(bool made_by_user);

 private:
  OrdinalMemory& memory_;
  const MemorySource* source_;
  c10::MempoolId_t id_;
};

// From now on all memory of xpu comes from `source`, uncached. Throws if a mapping has
// already allocated any.
void set_memory_source(const MemorySource* source);
// Off: each tensor has an allocation of the driver of its own. Of memories that are
// opened later.
void set_memory_caching(bool on);
const MemorySource* memory_source();

// The segments of a private pool, or of every pool for {0, 0}, sorted by ordinal and
// address.
std::vector<c10::CachingDeviceAllocator::SegmentInfo> memory_snapshot(
    c10::MempoolId_t pool);

// Gives every cached block back to the driver. No block may be in use.
void release_cached_memory();

// A capture's use of a private pool. Allocations on `stream` come from the pool until
// end(). The pool is kept as long as this object lives.
class CapturePool {
 public:
  CapturePool(c10::MempoolId_t id, c10::Stream stream);
  ~CapturePool();
  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

  c10::MempoolId_t id() const { return id_; }
  void end();

 private:
  OrdinalMemory& memory_;
  const c10::MempoolId_t id_;
  bool open_ = true;
};

}  // namespace xpurt
