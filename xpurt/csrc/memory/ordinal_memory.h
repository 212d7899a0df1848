// The memory of one ordinal: a pool for each stream, with memory of the home device.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/memory_amounts.h"
#include "host/mutex.h"
#include "memory/allocator.h"
#include "memory/memory_history.h"
#include "memory/memory_source.h"
#include "memory/memory_statistics.h"
#include "memory/segment_table.h"
#include "stream/stream.h"

namespace xpurt {

constexpr c10::MempoolId_t kDefaultPool{0, 0};  // for all that have no private pool

// Note [When a block may be handed out again]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A block belongs to the stream that was current when its memory came from the driver.
// A freed block goes back to that stream's pool. Its next use is safe in these cases:
// - Work on the device: a stream is in order, so work that is submitted later starts
//   after the work that still uses the old contents.
// - Work of other streams: a use of the block on another stream is recorded
//   (record_stream). At the free, an event is recorded on each of those streams. The
//   block comes back to the pool when all these events are complete.
// - Work on the host (native ops, copies by the host): it has ended when the op
//   returns, and the op holds its tensors until then. It must not begin before the
//   stream's queued work is done, so an op waits for its stream first. Between that
//   wait and the op's allocation another thread may submit work and free the block that
//   the op then gets. Results of host work are therefore allocated through
//   allocate_for_host(), which waits after it has the block.
// - Use by another stream, or by the driver: a segment leaves its stream only through
//   empty_cache(), which waits for every stream of the ordinal.
// The caller must wait for the stream that was current at the allocation before it uses
// the block on the host or on another stream. To omit the wait is an error, as on every
// PyTorch accelerator.
class OrdinalMemory {
 public:
  // source: allocates each block and frees it uncached. nullptr is the driver, with the
  // cache unless cached is false.
  OrdinalMemory(c10::DeviceIndex index, uint64_t epoch, const PhysicalDevice& home,
                SegmentTable& table, const MemorySource* source, bool cached);

  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  c10::DeviceIndex index() const { return index_; }
  const PhysicalDevice& home() const { return home_; }

  // Resets this object to serve another placement, as a new one would. False if
  // something of the earlier placement is still here. The caller holds the lock under
  // which the epochs of memories change.
  bool begin_again(uint64_t epoch);

  // At least `bytes` (not 0) of memory, aligned to 512 bytes. Throws
  // c10::OutOfMemoryError. May wait, with the GIL released, to empty the cache.
  void* allocate(size_t bytes, Stream& stream);

  void free(Segment& segment, void* pointer) noexcept;

  // Frees a block that no work was submitted for.
  void give_up(void* pointer);

  // Releases what is cached to the driver. Called after the placement `epoch` was
  // removed. Releases nothing if another placement is served by now.
  void abandon(uint64_t epoch);

  // For tests: bytes of segments that are being released to the driver.
  size_t releasing_bytes();

  // From now on `stream` uses the block, too.
  void record_stream(Segment& segment, void* pointer, Stream& stream);

  // Start and bytes of the allocated block that contains `address`.
  Extent extent(const Segment& segment, const void* address);

  // Whether the segment is of a private pool, in use or not.
  bool is_private(const Segment& segment);

  // Releases every segment without an active block to the driver, after the ordinal's
  // work is done: the segments of one private pool, or, for {0, 0}, those of all pools
  // that are not in use as private pools. Releases the GIL. At the end, throws an
  // asynchronous error of the streams, once.
  void empty_cache(c10::MempoolId_t pool = {0, 0});
  // The same for every pool, in use or not.
  void empty_all_pools();

  // See allocator.h.
  void create_pool(c10::MempoolId_t id, const MemorySource* source, bool use_on_oom);
  void begin_allocate_to_pool(c10::MempoolId_t id,
                              std::function<bool(c10::Stream)> takes);
  void end_allocate_to_pool(c10::MempoolId_t id);
  void release_pool(c10::MempoolId_t id);
  int pool_users(c10::MempoolId_t id);

  double fraction() const { return fraction_; }
  void set_fraction(double fraction);

  MemoryAmounts amounts();  // of the device

  c10::CachingDeviceAllocator::DeviceStats stats();
  void reset_accumulated_stats();
  void reset_peak_stats();
  // The segments of one private pool, or of all memory for {0, 0}.
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> snapshot(c10::MempoolId_t pool);

  struct Live {
    size_t blocks = 0;
    size_t bytes = 0;  // as requested
  };
  Live live();

 private:
  struct StreamPools : BlockPools {
    StreamPools(Stream& stream, c10::MempoolId_t id) : stream(stream), id(id) {}
    Stream& stream;
    const c10::MempoolId_t id;  // {0, 0}, or the id of a private pool
  };
  struct PrivatePool {
    int users = 0;
    const MemorySource* source = nullptr;
    bool use_on_oom = false;
  };
  struct Request {
    size_t bytes;
    size_t rounded;
    Stream& stream;
    CallStack stack;  // of the caller, if recorded
    c10::MempoolId_t id = kDefaultPool;
  };
  struct Pending {
    sycl::event done;
    Block* block;
  };
  // A segment that is being released to the driver. It is in no pool.
  struct Releasing {
    std::optional<sycl::event> done;
    std::unique_ptr<Segment> segment;
  };

  struct Route {
    c10::MempoolId_t id;
    std::function<bool(c10::Stream)> takes;
  };

  bool is_released(c10::MempoolId_t id) const;
  void forget_released_pools();
  c10::MempoolId_t pool_id_for(const Stream& stream) const;
  StreamPools& pools_of(Stream& stream);
  StreamPools& pools_of(const BlockPool& pool);
  Block* take(BlockPool& pool, size_t rounded);
  void merge_kept(BlockPool& pool);
  void merge_all_kept();
  Block* take_or_grow(const Request& request);
  Block* take_from_reserve(const Request& request);
  // ordinal_memory_growth.cpp; make_room() and leave() may release the lock.
  size_t allowed_bytes(size_t more) const;
  size_t held_bytes() const;
  size_t growth(StreamPools& pools, const Request& request);
  bool should_release(const Block* block, const Request& request) const;
  std::vector<std::pair<Segment*, Stream*>> too_much(const Request& request);
  void make_room(const Request& request, std::unique_lock<Mutex>& lock);
  void leave(std::vector<std::pair<Releasing, Stream*>> taken,
             std::unique_lock<Mutex>& lock);
  void give_back_left();
  std::unique_ptr<Segment> dropped(std::unique_ptr<Segment> segment,
                                   const CallStack& stack);
  bool grow(StreamPools& pools, const Request& request);
  void add_segment(StreamPools& pools, void* pointer, size_t bytes,
                   const Request& request, const MemorySource* source);
  void* from_driver(size_t bytes);
  void* from_source(const MemorySource& source, size_t bytes, Stream& stream);
  void to_source(Segment& segment) noexcept;
  void* allocate_uncached(const Request& request);
  void free_uncached(Block* block, std::unique_lock<Mutex>& lock) noexcept;
  void release(Block* block, const CallStack& stack);
  std::vector<std::unique_ptr<Segment>> take_free_segments(
      const std::function<bool(c10::MempoolId_t)>& wanted, const CallStack& stack);
  bool is_emptied(c10::MempoolId_t pool, c10::MempoolId_t asked_for) const;
  void empty(const std::function<bool(c10::MempoolId_t)>& wanted);
  void give_back(Segment& segment) noexcept;
  void release_completed();
  void wait_for_pending();
  void add_pending(Block* block, std::vector<sycl::event> events);
  [[noreturn]] void fail(const Request& request);
  void* handed_out(Block* block, const Request& request, std::unique_lock<Mutex>& lock);
  void report(void* pointer, int64_t bytes, std::unique_lock<Mutex>& lock);
  c10::CachingDeviceAllocator::SegmentInfo described(const Segment& segment,
                                                     const StreamPools& pools) const;
  void record(TraceEntry::Action action, const Block& block, const CallStack& stack);
  void record(TraceEntry::Action action, const Segment& segment,
              const CallStack& stack);

  const c10::DeviceIndex index_;
  std::atomic<uint64_t> epoch_;
  const PhysicalDevice& home_;
  const uint64_t total_;
  SegmentTable& table_;
  const MemorySource* const source_;
  const bool cached_;
  Mutex emptying_{Rank::emptying_cache};
  Mutex mutex_{Rank::memory};
  // Few: one for each stream that allocated memory, and for each stream of a private
  // pool.
  std::vector<std::unique_ptr<StreamPools>> pools_;
  std::vector<Route> routes_;  // to private pools; the first match wins
  std::map<c10::MempoolId_t, PrivatePool> private_pools_;  // those with users
  StreamPools* last_pools_ = nullptr;
  std::vector<Pending> pending_;
  std::deque<Releasing> releasing_;
  size_t releasing_bytes_ = 0;  // of releasing_, and of the segments that leave() holds
  size_t needed_ = 0;           // active bytes as requested, rounded
  size_t needed_peak_ = 0;      // the peak since the cache was emptied
  size_t allocations_ = 0;
  size_t peak_at_ = 0;  // value of allocations_ when the peak last grew
  size_t slack_ = 0;  // what may be reserved above it; see Note [How much is reserved]
  MemoryStatistics statistics_;
  double fraction_ = 1.0;
  uint64_t limit_;
};

}  // namespace xpurt
