// c10's counts of a device's memory, and the events that change each count.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "memory/block_pool.h"

namespace xpurt {

class MemoryStatistics {
 public:
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  // A block as it is counted. `kind`: the index of its pool in a StatArray.
  struct Amount {
    size_t kind;
    size_t bytes;
    size_t requested;
  };
  static Amount amount_of(const Block& block) {
    return {kind_of(*block.segment->pool), block.bytes, block.requested};
  }
  // Of memory that comes from no pool.
  static Amount unpooled(size_t bytes, size_t requested) {
    return {kind_of(requested > kSmallBytes), bytes, requested};
  }

  void handed_out(const Block& block) { handed_out(amount_of(block)); }
  void handed_out(const Amount& block) {
    increase(stats_.allocation, block.kind, 1);
    increase(stats_.allocated_bytes, block.kind, block.bytes);
    increase(stats_.active, block.kind, 1);
    increase(stats_.active_bytes, block.kind, block.bytes);
    increase(stats_.requested_bytes, block.kind, block.requested);
    ++live_blocks_;
    live_bytes_ += block.requested;
  }
  void freed(const Block& block) { freed(amount_of(block)); }
  void freed(const Amount& block) {
    decrease(stats_.allocation, block.kind, 1);
    decrease(stats_.allocated_bytes, block.kind, block.bytes);
    --live_blocks_;
    live_bytes_ -= block.requested;
  }
  // No stream still uses a freed block.
  void inactive(const Block& block) { inactive(amount_of(block)); }
  void inactive(const Amount& block) {
    decrease(stats_.active, block.kind, 1);
    decrease(stats_.active_bytes, block.kind, block.bytes);
    decrease(stats_.requested_bytes, block.kind, block.requested);
  }
  void segment_made(const Segment& segment) {
    segment_made(kind_of(*segment.pool), segment.bytes);
  }
  void segment_made(size_t kind, size_t bytes) {
    increase(stats_.segment, kind, 1);
    increase(stats_.reserved_bytes, kind, bytes);
    ++stats_.num_device_alloc;
  }
  void segment_dropped(const Segment& segment) {
    segment_dropped(kind_of(*segment.pool), segment.bytes);
  }
  void segment_dropped(size_t kind, size_t bytes) {
    decrease(stats_.segment, kind, 1);
    decrease(stats_.reserved_bytes, kind, bytes);
    ++stats_.num_device_free;
  }
  // Updates the counts of a pool's split remainders, which were these before a change.
  void remainders(const BlockPool& pool, size_t blocks_before, size_t bytes_before) {
    const size_t kind = kind_of(pool);
    change(stats_.inactive_split, kind, blocks_before, pool.inactive_split_blocks());
    change(stats_.inactive_split_bytes, kind, bytes_before,
           pool.inactive_split_bytes());
  }
  void retried() { ++stats_.num_alloc_retries; }
  void out_of_memory() { ++stats_.num_ooms; }
  void synchronized() { ++stats_.num_sync_all_streams; }

  const Stats& get() const { return stats_; }
  size_t allocated_bytes() const { return stats_.allocated_bytes[0].current; }
  size_t reserved_bytes() const { return stats_.reserved_bytes[0].current; }
  size_t live_blocks() const { return live_blocks_; }
  size_t live_bytes() const { return live_bytes_; }

  void reset_accumulated() {
    each([](auto& stat) { stat.reset_accumulated(); });
    stats_.num_alloc_retries = stats_.num_ooms = stats_.num_sync_all_streams = 0;
    stats_.num_device_alloc = stats_.num_device_free = 0;
  }
  void reset_peaks() {
    each([](auto& stat) { stat.reset_peak(); });
  }

 private:
  using StatArray = c10::CachingAllocator::StatArray;
  using StatType = c10::CachingAllocator::StatType;

  static size_t kind_of(bool large) {
    return static_cast<size_t>(large ? StatType::LARGE_POOL : StatType::SMALL_POOL);
  }
  static size_t kind_of(const BlockPool& pool) { return kind_of(pool.large()); }
  static void increase(StatArray& stat, size_t kind, size_t amount) {
    stat[0].increase(amount);
    stat[kind].increase(amount);
  }
  static void decrease(StatArray& stat, size_t kind, size_t amount) {
    stat[0].decrease(amount);
    stat[kind].decrease(amount);
  }
  static void change(StatArray& stat, size_t kind, size_t before, size_t now) {
    if (now > before) increase(stat, kind, now - before);
    if (now < before) decrease(stat, kind, before - now);
  }
  template <typename F>
  void each(F&& apply) {
    for (StatArray* array :
         {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split,
          &stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes,
          &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
      for (auto& stat : *array) apply(stat);
    }
    apply(stats_.oversize_allocations);
    apply(stats_.oversize_segments);
  }

  Stats stats_ = [] {
    Stats none;
    none.max_split_size = -1;  // blocks of any size are split, so none is oversize
    return none;
  }();
  size_t live_blocks_ = 0;
  size_t live_bytes_ = 0;  // as requested
};

}  // namespace xpurt
