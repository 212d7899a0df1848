// Statistics, history and snapshots of OrdinalMemory.
#include "memory/ordinal_memory.h"

#include <algorithm>

namespace xpurt {

void OrdinalMemory::record(TraceEntry::Action action, const Block& block,
                           const CallStack& stack) {
  const StreamPools& pools = pools_of(*block.segment->pool);
  memory_history().add(action, index_, reinterpret_cast<size_t>(block.pointer),
                       block.requested, pools.stream.id().id(), pools.id, stack);
}

void OrdinalMemory::record(TraceEntry::Action action, const Segment& segment,
                           const CallStack& stack) {
  const StreamPools& pools = pools_of(*segment.pool);
  memory_history().add(action, index_, reinterpret_cast<size_t>(segment.pointer),
                       segment.bytes, pools.stream.id().id(), pools.id, stack);
}

c10::CachingDeviceAllocator::DeviceStats OrdinalMemory::stats() {
  std::lock_guard<Mutex> lock(mutex_);
  merge_all_kept();
  c10::CachingDeviceAllocator::DeviceStats result = statistics_.get();
  for (const auto& pools : pools_) {
    if (pools->id == kDefaultPool) continue;
    auto& reserved = result.reserved_bytes_by_private_pools[pools->id];
    for (const BlockPool* pool : {&pools->small, &pools->large}) {
      for (const auto& segment : pool->segments()) {
        reserved[0].increase(segment->bytes);
        reserved[pool->large() ? 2 : 1].increase(segment->bytes);
      }
    }
  }
  return result;
}

void OrdinalMemory::reset_accumulated_stats() {
  std::lock_guard<Mutex> lock(mutex_);
  statistics_.reset_accumulated();
}

void OrdinalMemory::reset_peak_stats() {
  std::lock_guard<Mutex> lock(mutex_);
  merge_all_kept();
  statistics_.reset_peaks();
}

OrdinalMemory::Live OrdinalMemory::live() {
  std::lock_guard<Mutex> lock(mutex_);
  return {statistics_.live_blocks(), statistics_.live_bytes()};
}

Extent OrdinalMemory::extent(const Segment& segment, const void* address) {
  std::lock_guard<Mutex> lock(mutex_);
  // The blocks fill the segment, so the last one that starts before it contains it.
  size_t slot = (static_cast<const char*>(address) - segment.pointer) >> segment.shift;
  const auto starts_before = [&](const Block* block) {
    return block != nullptr && block->pointer <= address;
  };
  while (!starts_before(segment.starts[slot])) --slot;
  const Block& block = *segment.starts[slot];
  return block.allocated ? Extent{block.pointer, block.bytes} : Extent{};
}

c10::CachingDeviceAllocator::SegmentInfo OrdinalMemory::described(
    const Segment& segment, const StreamPools& pools) const {
  c10::CachingDeviceAllocator::SegmentInfo info;
  info.device = index_;
  info.address = reinterpret_cast<size_t>(segment.pointer);
  info.total_size = segment.bytes;
  info.stream = reinterpret_cast<void*>(pools.stream.id().id());
  info.owner_private_pool_id = pools.id;
  info.is_large = segment.pool->large();
  info.context_when_allocated = segment.stack;
  return info;
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> OrdinalMemory::snapshot(
    c10::MempoolId_t pool_id) {
  std::lock_guard<Mutex> lock(mutex_);
  merge_all_kept();
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> result;
  size_t total_active = 0;
  for (auto& pools : pools_) {
    if (pool_id != kDefaultPool && pool_id != pools->id) continue;
    for (BlockPool* pool : {&pools->small, &pools->large}) {
      for (auto& segment : pool->segments()) {
        auto& info = result.emplace_back(described(*segment, *pools));
        for (Block* block = segment->first; block != nullptr; block = block->after) {
          info.blocks.push_back({block->bytes, block->requested, 0, block->allocated,
                                 block->active, block->stack});
          if (block->allocated) info.allocated_size += block->bytes;
          if (block->active) info.active_size += block->bytes;
          info.requested_size += block->requested;
        }
        total_active += info.active_size;
        // RecordContext::STATE keeps stacks only of what is allocated now.
        if (info.active_size == 0 && stacks_kept.load() < RecordContext::ALLOC) {
          info.context_when_allocated = nullptr;
        }
      }
    }
  }
  for (const Releasing& each : releasing_) {
    const Segment& segment = *each.segment;
    const StreamPools& pools = pools_of(*segment.pool);
    if (pool_id != kDefaultPool && pool_id != pools.id) continue;
    auto& info = result.emplace_back(described(segment, pools));
    info.blocks.push_back({segment.bytes, 0, 0, false, false, nullptr});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  memory_history().add(TraceEntry::SNAPSHOT, index_, 0, total_active, 0, pool_id, {});
  return result;
}

}  // namespace xpurt
