#include "memory/ordinal_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "device/event_status.h"
#include "host/gil.h"
#include "stream/capture.h"

namespace xpurt {

OrdinalMemory::OrdinalMemory(c10::DeviceIndex index, uint64_t epoch,
                             const PhysicalDevice& home, SegmentTable& table,
                             const MemorySource* source, bool cached)
    : index_(index),
      epoch_(epoch),
      home_(home),
      total_(total_memory(home.device)),
      table_(table),
      source_(source),
      cached_(cached && source == nullptr),
      limit_(total_) {}

bool OrdinalMemory::begin_again(uint64_t epoch) {
  std::lock_guard<Mutex> lock(mutex_);
  const auto has_segments = [](const auto& pools) {
    return !pools->small.segments().empty() || !pools->large.segments().empty();
  };
  if (!private_pools_.empty() || !routes_.empty() || !pending_.empty() ||
      releasing_bytes_ != 0 || std::ranges::any_of(pools_, has_segments)) {
    return false;
  }
  pools_.clear();
  last_pools_ = nullptr;
  needed_ = needed_peak_ = allocations_ = peak_at_ = slack_ = 0;
  statistics_ = {};
  fraction_ = 1.0;
  limit_ = total_;
  epoch_.store(epoch, std::memory_order_release);
  return true;
}

size_t OrdinalMemory::releasing_bytes() {
  std::lock_guard<Mutex> lock(mutex_);
  return releasing_bytes_;
}

OrdinalMemory::StreamPools& OrdinalMemory::pools_of(Stream& stream) {
  const c10::MempoolId_t id = pool_id_for(stream);
  if (last_pools_ != nullptr && &last_pools_->stream == &stream &&
      last_pools_->id == id) {
    return *last_pools_;
  }
  for (auto& pools : pools_) {
    if (&pools->stream == &stream && pools->id == id)
      return *(last_pools_ = pools.get());
  }
  pools_.push_back(std::make_unique<StreamPools>(stream, id));
  return *(last_pools_ = pools_.back().get());
}

OrdinalMemory::StreamPools& OrdinalMemory::pools_of(const BlockPool& pool) {
  return **std::find_if(pools_.begin(), pools_.end(),
                        [&](const auto& each) { return each->contains(&pool); });
}

Block* OrdinalMemory::take(BlockPool& pool, size_t rounded) {
  const size_t blocks = pool.inactive_split_blocks();
  const size_t bytes = pool.inactive_split_bytes();
  Block* block = pool.take(rounded);
  statistics_.remainders(pool, blocks, bytes);
  return block;
}

void OrdinalMemory::merge_kept(BlockPool& pool) {
  const size_t blocks = pool.inactive_split_blocks();
  const size_t bytes = pool.inactive_split_bytes();
  pool.merge_kept();
  statistics_.remainders(pool, blocks, bytes);
}

void OrdinalMemory::merge_all_kept() {
  for (auto& pools : pools_) merge_kept(pools->small);
}

Block* OrdinalMemory::take_or_grow(const Request& request) {
  StreamPools& pools = pools_of(request.stream);
  BlockPool& pool = pools.of(request.rounded);
  Block* block = take(pool, request.rounded);
  if (block == nullptr && grow(pools, request)) block = take(pool, request.rounded);
  return block;
}

void* OrdinalMemory::allocate(size_t bytes, Stream& stream) {
  Request request{bytes, 0, stream, gather_stack(RecordContext::STATE)};
  // Checked before any rounding, which could overflow.
  if (bytes > total_) fail(request);
  request.rounded = round_block(bytes);
  if (!cached_) return allocate_uncached(request);
  {
    std::unique_lock<Mutex> lock(mutex_);
    if (!pending_.empty() || !releasing_.empty()) release_completed();
    StreamPools& pools = pools_of(request.stream);
    BlockPool& pool = pools.of(request.rounded);
    request.id = pools.id;
    bool leaves = false;
    if (request.rounded >= kOwnSegmentBytes) {
      merge_kept(pool);
      leaves = should_release(pool.best_fit(request.rounded), request);
    }
    Block* block = leaves ? nullptr : take(pool, request.rounded);
    if (block == nullptr) {
      make_room(request, lock);
      block = take_or_grow(request);
    }
    if (block != nullptr) return handed_out(block, request, lock);
    statistics_.retried();
  }
  // During a capture no thread can wait for the device.
  if (!capture_is_underway()) empty_cache();
  {
    std::unique_lock<Mutex> lock(mutex_);
    // The wait may have brought back a block that fits.
    Block* block = take_or_grow(request);
    if (block == nullptr) block = take_from_reserve(request);
    if (block != nullptr) return handed_out(block, request, lock);
  }
  fail(request);
}

void* OrdinalMemory::handed_out(Block* block, const Request& request,
                                std::unique_lock<Mutex>& lock) {
  block->requested = request.bytes;
  ++allocations_;
  needed_ += request.rounded;
  if (needed_ > needed_peak_) {
    needed_peak_ = needed_;
    peak_at_ = allocations_;
    slack_ = 0;
  }
  if (C10_UNLIKELY(request.stack != nullptr)) block->stack = request.stack;
  statistics_.handed_out(*block);
  if (is_recording()) record(TraceEntry::ALLOC, *block, request.stack);
  void* pointer = block->pointer;
  report(pointer, static_cast<int64_t>(block->bytes), lock);
  return pointer;
}

void OrdinalMemory::report(void* pointer, int64_t bytes,
                           std::unique_lock<Mutex>& lock) {
  const size_t allocated = statistics_.allocated_bytes();
  const size_t reserved = statistics_.reserved_bytes();
  lock.unlock();
  c10::reportMemoryUsageToProfiler(pointer, bytes, allocated, reserved,
                                   c10::Device(c10::DeviceType::XPU, index_));
}

void OrdinalMemory::free(Segment& segment, void* pointer) noexcept {
  const CallStack stack = gather_stack(RecordContext::ALL);
  std::unique_lock<Mutex> lock(mutex_);
  Block* block = segment.allocated_at(pointer);
  if (block == nullptr) return;
  block->allocated = false;
  statistics_.freed(*block);
  if (is_recording())
    record(TraceEntry::FREE_REQUESTED, *block, stack ? stack : block->stack);
  if (!cached_) return free_uncached(block, lock);
  const auto bytes = static_cast<int64_t>(block->bytes);
  if (!block->users.empty()) {
    // The block stays active, so no other thread uses it meanwhile. Recording takes
    // the streams' locks, which come before this one.
    std::vector<void*> users = std::move(block->users);
    block->users.clear();
    lock.unlock();
    std::vector<sycl::event> events;
    for (void* user : users) {
      auto& stream = *static_cast<Stream*>(user);
      try {
        // Captured work does not run.
        if (!stream.idle() && !is_capturing(stream)) events.push_back(stream.record());
      } catch (const std::exception&) {
        // A queue that rejects an event also rejects work. Its earlier work is waited
        // for when the cache is emptied.
      }
    }
    lock.lock();
    add_pending(block, std::move(events));
  } else {
    release(block, stack);
  }
  report(pointer, -bytes, lock);
}

void OrdinalMemory::add_pending(Block* block, std::vector<sycl::event> events) {
  if (events.empty()) return release(block, nullptr);
  block->events = static_cast<uint32_t>(events.size());
  for (auto& event : events) pending_.push_back({std::move(event), block});
}

void OrdinalMemory::release(Block* block, const CallStack& stack) {
  if (is_recording())
    record(TraceEntry::FREE_COMPLETED, *block, stack ? stack : block->stack);
  if (block->stack) block->stack.reset();
  statistics_.inactive(*block);
  needed_ -= round_block(block->requested);
  BlockPool& pool = *block->segment->pool;
  if (C10_LIKELY(cached_ && pool.keep(block))) return;
  const size_t blocks = pool.inactive_split_blocks();
  const size_t bytes = pool.inactive_split_bytes();
  if (block->bytes <= kLargestKept) pool.merge_kept();  // too many are kept
  pool.give_back(block);
  statistics_.remainders(pool, blocks, bytes);
}

void OrdinalMemory::release_completed() {
  size_t kept = 0;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!is_over(pending_[i].done)) {
      if (kept != i) pending_[kept] = std::move(pending_[i]);
      ++kept;
    } else if (--pending_[i].block->events == 0) {
      release(pending_[i].block, nullptr);
    }
  }
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(kept), pending_.end());
  give_back_left();
}

void OrdinalMemory::record_stream(Segment& segment, void* pointer, Stream& stream) {
  std::lock_guard<Mutex> lock(mutex_);
  Block* block = segment.allocated_at(pointer);
  if (block == nullptr) return;
  if (&pools_of(*segment.pool).stream == &stream) return;
  auto& users = block->users;
  if (std::find(users.begin(), users.end(), &stream) == users.end()) {
    users.push_back(&stream);
  }
}

void OrdinalMemory::wait_for_pending() {
  std::vector<Pending> waited;
  {
    std::lock_guard<Mutex> lock(mutex_);
    waited = pending_;
  }
  for (auto& each : waited) {
    try {
      wait_for_end(each.done);
    } catch (const sycl::exception&) {  // its stream keeps the error
    }
  }
  std::lock_guard<Mutex> lock(mutex_);
  if (!waited.empty()) statistics_.synchronized();
  release_completed();
}

std::vector<std::unique_ptr<Segment>> OrdinalMemory::take_free_segments(
    const std::function<bool(c10::MempoolId_t)>& wanted, const CallStack& stack) {
  std::vector<std::unique_ptr<Segment>> taken;
  std::lock_guard<Mutex> lock(mutex_);
  merge_all_kept();
  for (auto& pools : pools_) {
    if (!wanted(pools->id)) continue;
    for (BlockPool* pool : {&pools->small, &pools->large}) {
      for (auto& segment : pool->take_free_segments()) {
        table_.remove(segment.get());
        taken.push_back(dropped(std::move(segment), stack));
      }
    }
  }
  for (Releasing& each : releasing_) {
    // More segments may be about to join this list: see leave().
    releasing_bytes_ -= each.segment->bytes;
    taken.push_back(dropped(std::move(each.segment), stack));
  }
  releasing_.clear();
  forget_released_pools();
  if (wanted(kDefaultPool)) needed_peak_ = needed_;
  return taken;
}

void OrdinalMemory::give_back(Segment& segment) noexcept {
  if (segment.source != nullptr) return to_source(segment);
  sycl::free(segment.pointer, home_.context);
}

void OrdinalMemory::give_up(void* pointer) {
  if (Segment* segment = table_.find(pointer)) free(*segment, pointer);
}

void OrdinalMemory::abandon(uint64_t epoch) {
  if (this->epoch() != epoch) return;
  const auto all = [](c10::MempoolId_t) { return true; };
  for (auto& segment : take_free_segments(all, nullptr)) give_back(*segment);
}

bool OrdinalMemory::is_emptied(c10::MempoolId_t pool,
                               c10::MempoolId_t asked_for) const {
  return pool == asked_for || (asked_for == kDefaultPool && is_released(pool));
}

void OrdinalMemory::empty_cache(c10::MempoolId_t id) {
  empty([=, this](c10::MempoolId_t pool) { return is_emptied(pool, id); });
}

void OrdinalMemory::empty_all_pools() {
  empty([](c10::MempoolId_t) { return true; });
}

void OrdinalMemory::empty(const std::function<bool(c10::MempoolId_t)>& wanted) {
  if (capture_is_underway()) {
    refuse_in_capture("emptying the cache of xpu memory",
                      "that waits for the device, whose work is recorded, not run.");
  }
  const CallStack stack = gather_stack(RecordContext::ALL);
  std::exception_ptr error;
  {
    WithoutGil released;
    // One thread at a time, so that a thread that is out of memory can use what another
    // thread frees.
    std::lock_guard<Mutex> alone(emptying_);
    wait_for_pending();
    auto taken = take_free_segments(wanted, stack);
    if (taken.empty()) return;
    // A wait throws each stream's kept error once, and Ctrl-C ends it early. All
    // streams must be waited for.
    for (bool waited = false; !waited;) {
      try {
        synchronize_device(index_);
        waited = true;
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    for (auto& segment : taken) give_back(*segment);
  }
  if (error) std::rethrow_exception(error);
}

void OrdinalMemory::set_fraction(double fraction) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "invalid fraction: ", fraction,
                    "; a memory fraction is between 0 and 1");
  std::unique_lock<Mutex> lock(mutex_);
  fraction_ = fraction;
  limit_ = static_cast<uint64_t>(fraction * static_cast<double>(total_));
  const bool holds_more = statistics_.reserved_bytes() > limit_;
  lock.unlock();
  // Else the cache would give out more than the limit allows.
  if (holds_more) empty_cache();
}

MemoryAmounts OrdinalMemory::amounts() {
  const auto held = [&] {
    std::lock_guard<Mutex> lock(mutex_);
    return statistics_.reserved_bytes();
  };
  return memory_amounts(home_.device, total_, held);
}

}  // namespace xpurt
