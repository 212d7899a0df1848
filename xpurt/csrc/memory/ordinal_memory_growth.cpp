// How OrdinalMemory allocates memory of the driver: how much at a time, and what it
// releases before.
#include <c10/core/AllocatorConfig.h>
#include <sys/mman.h>

#include <algorithm>

#include "device/event_status.h"
#include "host/host_memory.h"
#include "memory/ordinal_memory.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStableAllocations = 2000;  // the peak is old after as many

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The system commits host memory page by page at the first access. With huge pages this
// takes a third of the time. A hint, so its failure is not an error.
void prefer_huge_pages(void* pointer, size_t bytes) {
  constexpr uintptr_t page = kPage;
  const auto start = (reinterpret_cast<uintptr_t>(pointer) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(pointer) + bytes) / page * page;
  if (end > start) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

}  // namespace

// Note [How much is reserved]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A process should hold little more than it needs at its peak: cached memory that is
// never used is missing elsewhere. A pool's first segment has the usual size. It serves
// small programs at once, and causes no release. After that:
// - A request of kOwnSegmentBytes or more gets a segment of its own size. Packed into
//   larger segments, blocks of a few sizes leave a seventh of them empty.
// - The allowed amount is the peak of the rounded requests, this one included, and a
//   little on top. If more would be reserved, whole free segments of any stream first
//   go back to the driver. The new segment is as large as what is then left of the
//   allowed amount, or as the request.
// - A whole free segment that is much too large goes back, too, instead of being split,
//   while the peak still grows and once half of it is needed. A part of the segment in
//   use would keep the rest at the peak.
// - A program that repeats its work may need other segments at each stage of a round.
//   If they came and went, each round would map their pages again: compiled ResNet-18
//   in bfloat16 mapped 7 of 60 MB in each call, and took 1.04 of the time. So once the
//   peak has not grown for long, a segment that would make others leave is allowed on
//   top, up to an eighth of the peak.
// So what is reserved grows by hardly more than what is requested.
//
// Queued work may still use a free segment. The segment leaves the pools at once. It
// leaves this process when an event on its stream is complete; no thread waits for
// that.
//
// Private pools are left out: a graph replays at its recorded addresses.
size_t OrdinalMemory::allowed_bytes(size_t more) const {
  const size_t peak = std::max(needed_peak_, needed_ + more);
  return peak + peak / 50 + kSmallBytes + slack_;
}

size_t OrdinalMemory::held_bytes() const {
  return statistics_.reserved_bytes() - releasing_bytes_;
}

size_t OrdinalMemory::growth(StreamPools& pools, const Request& request) {
  // Users may set it: PYTORCH_ALLOC_CONF=large_segment_size_mb:40.
  const size_t large =
      c10::CachingAllocator::AcceleratorAllocatorConfig::large_segment_size();
  const size_t usual = segment_bytes_for(request.rounded, large);
  if (pools.id != kDefaultPool || large != kLargeSegmentBytes ||
      pools.of(request.rounded).segments().empty()) {
    return usual;
  }
  const size_t own = whole_pages(request.rounded);
  const bool alone = request.rounded >= kOwnSegmentBytes;
  const size_t wanted = alone ? own : kSmallSegmentBytes;
  const size_t least = std::max(own, kOwnSegmentBytes);
  const size_t allowed = allowed_bytes(request.rounded);
  const size_t left = allowed - std::min(allowed, held_bytes());
  return std::max(least, std::min(wanted, left / kPage * kPage));
}

// Whether the best-fitting block should be released with its segment instead of used.
bool OrdinalMemory::should_release(const Block* block, const Request& request) const {
  // A pool's only segment stays: its replacement would be as large.
  return block != nullptr && block->segment->is_free() && request.id == kDefaultPool &&
         block->segment->pool->segments().size() > 1 &&
         block->bytes > request.rounded + request.rounded / 8 &&
         allocations_ - peak_at_ <= kStableAllocations &&
         needed_ + request.rounded > needed_peak_ / 2 &&
         held_bytes() + request.rounded > needed_peak_ - needed_peak_ / 10;
}

// The segments that should be released before more memory is reserved.
std::vector<std::pair<Segment*, Stream*>> OrdinalMemory::too_much(
    const Request& request) {
  std::vector<std::pair<Segment*, Stream*>> found;
  const size_t allowed = allowed_bytes(request.rounded);
  const size_t held = held_bytes();
  const bool is_first = pools_of(request.stream).of(request.rounded).segments().empty();
  if (held + request.rounded <= allowed || is_first) return found;
  if (allocations_ - peak_at_ > kStableAllocations &&
      slack_ + request.rounded <= needed_peak_ / 8) {
    slack_ += request.rounded;
    return found;
  }
  merge_all_kept();
  for (const auto& pools : pools_) {
    if (pools->id != kDefaultPool) continue;
    for (const BlockPool* pool : {&pools->small, &pools->large}) {
      for (const auto& segment : pool->segments()) {
        if (segment->is_free()) found.emplace_back(segment.get(), &pools->stream);
      }
    }
  }
  // The largest segments first, so that the fewest are released.
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first->bytes > b.first->bytes;
  });
  size_t given = 0;
  const auto enough = std::find_if(found.begin(), found.end(), [&](const auto& each) {
    if (held - given + request.rounded <= allowed) return true;
    given += each.first->bytes;
    return false;
  });
  found.erase(enough, found.end());
  return found;
}

void OrdinalMemory::make_room(const Request& request, std::unique_lock<Mutex>& lock) {
  // Beyond the limit, allocate() retries after it has emptied the cache, and counts it.
  if (statistics_.reserved_bytes() + request.rounded > limit_ ||
      capture_is_underway()) {
    return;
  }
  std::vector<std::pair<Releasing, Stream*>> taken;
  const auto take_out = [&](Segment& segment, Stream& stream) {
    releasing_bytes_ += segment.bytes;
    table_.remove(&segment);
    BlockPool& pool = *segment.pool;
    taken.emplace_back(Releasing{std::nullopt, pool.take_out(segment)}, &stream);
  };
  StreamPools& pools = pools_of(request.stream);
  BlockPool& pool = pools.of(request.rounded);
  while (const Block* block = pool.best_fit(request.rounded)) {
    if (request.rounded < kOwnSegmentBytes || !should_release(block, request))
      return leave(std::move(taken), lock);
    take_out(*block->segment, pools.stream);
  }
  for (const auto& [segment, stream] : too_much(request)) take_out(*segment, *stream);
  leave(std::move(taken), lock);
}

void OrdinalMemory::leave(std::vector<std::pair<Releasing, Stream*>> taken,
                          std::unique_lock<Mutex>& lock) {
  if (taken.empty()) return;
  // Recording takes the streams' locks, which come before this one.
  lock.unlock();
  for (auto& [leaving, stream] : taken) {
    try {
      leaving.done = stream->record();
    } catch (const std::exception&) {
      // The segment stays until the cache is emptied, which waits for the device.
    }
  }
  lock.lock();
  for (auto& [leaving, stream] : taken) releasing_.push_back(std::move(leaving));
  give_back_left();
}

// The oldest first: the segments of one stream become free in this order.
void OrdinalMemory::give_back_left() {
  while (!releasing_.empty() && releasing_.front().done &&
         is_over(*releasing_.front().done)) {
    const auto segment = dropped(std::move(releasing_.front().segment), nullptr);
    releasing_bytes_ -= segment->bytes;
    releasing_.pop_front();
    give_back(*segment);
  }
}

std::unique_ptr<Segment> OrdinalMemory::dropped(std::unique_ptr<Segment> segment,
                                                const CallStack& stack) {
  if (is_recording())
    record(TraceEntry::SEGMENT_FREE, *segment, stack ? stack : segment->stack);
  statistics_.segment_dropped(*segment);
  return segment;
}

bool OrdinalMemory::grow(StreamPools& pools, const Request& request) {
  const size_t bytes = growth(pools, request);
  if (statistics_.reserved_bytes() + bytes > limit_) return false;
  const auto found = private_pools_.find(pools.id);
  const MemorySource* source =
      found == private_pools_.end() ? nullptr : found->second.source;
  void* pointer = source == nullptr ? from_driver(bytes)
                                    : from_source(*source, bytes, pools.stream);
  if (pointer == nullptr) return false;
  add_segment(pools, pointer, bytes, request, source);
  return true;
}

void OrdinalMemory::add_segment(StreamPools& pools, void* pointer, size_t bytes,
                                const Request& request, const MemorySource* source) {
  Segment& segment = pools.of(request.rounded).add_segment(pointer, bytes, this);
  segment.source = source;
  if (source != nullptr) segment.queue = &pools.stream.shared_queue();
  segment.stack = request.stack;
  table_.add(&segment);
  statistics_.segment_made(segment);
  if (is_recording()) record(TraceEntry::SEGMENT_ALLOC, segment, request.stack);
}

void* OrdinalMemory::from_driver(size_t bytes) {
  if (home_.is_cpu && bytes >= kLargeSegmentBytes) {
    // The system overcommits memory, and ends the process when more is used than there
    // is.
    const HostMemory host = host_memory();
    if (host.total != 0 && bytes > host.free + host.swap) return nullptr;
  }
  try {
    // Device memory of a CPU is ordinary memory. If another device shares the host's
    // address space, this is shared memory that both can access.
    void* pointer = home_.host_accessible && !home_.is_cpu
                        ? sycl::malloc_shared(bytes, home_.device, home_.context)
                        : sycl::malloc_device(bytes, home_.device, home_.context);
    if (pointer != nullptr && home_.is_cpu) prefer_huge_pages(pointer, bytes);
    return pointer;
  } catch (const sycl::exception&) {
    return nullptr;  // some drivers throw instead
  }
}

}  // namespace xpurt
