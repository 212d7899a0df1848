#include "memory/replica/pool.h"

#include "device/event_status.h"

#include <algorithm>

namespace xpurt {
namespace {

constexpr size_t kSmallRounding = 512;
constexpr size_t kLargeRounding = size_t(2) << 20;  // from one MiB on
constexpr size_t kLarge = size_t(1) << 20;

// A copy that takes the last room would be evicted for the next results, and come back
// behind them.
constexpr size_t kForResults = size_t(4) << 20;

size_t rounded(size_t bytes) {
  const size_t unit = bytes < kLarge ? kSmallRounding : kLargeRounding;
  return std::max<size_t>(1, (bytes + unit - 1) / unit) * unit;
}

void* from_driver(size_t bytes, const PhysicalDevice& device) {
  try {
    return sycl::malloc_device(bytes, device.device, device.context);
  } catch (const sycl::exception&) {
    return nullptr;  // some drivers throw instead
  }
}

// Keeps the GIL: the caller holds a lock that a thread with the GIL may wait for.
void wait_for(const Uses& uses) {
  for (const Use& use : uses) {
    try {
      if (!use.stream->has_seen(use.ticket)) wait_for_end(use.done);
    } catch (const sycl::exception&) {  // its stream keeps the error
    }
  }
}

}  // namespace

bool ReplicaPool::grow(size_t rounded) {
  size_t bytes = segment_bytes_for(rounded, /*large=*/rounded);
  void* pointer = from_driver(bytes, device_);
  if (pointer == nullptr && bytes > rounded) {
    bytes = rounded;
    pointer = from_driver(bytes, device_);
  }
  if (pointer == nullptr) {
    limit_ = bytes_reserved_ + rounded - 1;
    return false;
  }
  bytes_reserved_ += bytes;
  limit_ = std::max(limit_, bytes_reserved_);
  pools_.of(rounded).add_segment(pointer, bytes, this);
  return true;
}

ReplicaMemory ReplicaPool::take(size_t bytes) {
  const size_t wanted = rounded(bytes);
  BlockPool& pool = pools_.of(wanted);
  Block* block = pool.take(wanted);
  if (block == nullptr && grow(wanted)) block = pool.take(wanted);
  ReplicaMemory result;
  if (block == nullptr) return result;
  result.pointer = block->pointer;
  result.bytes = block->bytes;
  result.block = block;
  result.uses.written = pending_.take_over(block->pointer, block->bytes);
  bytes_taken_ += block->bytes;
  return result;
}

void ReplicaPool::give_back(ReplicaMemory memory) {
  bytes_taken_ -= memory.bytes;
  memory.uses.drop_finished();
  if (!memory.uses.empty()) pending_.add(memory.pointer, memory.bytes, memory.uses);
  memory.block->allocated = memory.block->active = false;
  memory.block->segment->pool->give_back(memory.block);
}

bool ReplicaPool::has_cached(size_t bytes) {
  const size_t wanted = rounded(bytes);
  return pools_.of(wanted).best_fit(wanted) != nullptr;
}

bool ReplicaPool::may_have_room(size_t bytes) {
  return bytes_reserved_ + rounded(bytes) + kForResults <= limit_ || has_cached(bytes);
}

size_t ReplicaPool::trim() {
  size_t freed = 0;
  for (BlockPool* pool : {&pools_.small, &pools_.large}) {
    for (const auto& segment : pool->take_free_segments()) {
      wait_for(pending_.take_over(segment->pointer, segment->bytes));
      sycl::free(segment->pointer, device_.context);
      freed += segment->bytes;
      bytes_reserved_ -= segment->bytes;
    }
  }
  return freed;
}

}  // namespace xpurt
