#include "ordinal_memory.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>

#include "gil.h"
#include "host_memory.h"

namespace xpurt {
namespace {

using c10::CachingAllocator::format_size;

c10::Device device_at(c10::DeviceIndex index) {
  return c10::Device(c10::DeviceType::XPU, index);
}

uint64_t total_memory(const PhysicalDevice& home) {
  if (!home.is_cpu) return home.total_memory;
  const uint64_t total = host_memory().total;
  return total != 0 ? std::min(total, home.total_memory) : home.total_memory;
}

// Host memory comes from the system page by page as it is touched; in huge pages
// that takes a third of the time. A hint, so its failure is no error.
void prefer_huge_pages(void* pointer, size_t bytes) {
  constexpr uintptr_t page = 4096;
  const auto start = (reinterpret_cast<uintptr_t>(pointer) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(pointer) + bytes) / page * page;
  if (end > start) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

bool is_complete(const sycl::event& event) {
  try {
    return event.get_info<sycl::info::event::command_execution_status>() ==
           sycl::info::event_command_status::complete;
  } catch (const sycl::exception&) {
    return true;  // the work failed: it will not touch memory any more
  }
}

}  // namespace

OrdinalMemory::OrdinalMemory(c10::DeviceIndex index, uint64_t epoch,
                             const PhysicalDevice& home, SegmentTable& table)
    : index_(index),
      epoch_(epoch),
      home_(home),
      total_(total_memory(home)),
      table_(table),
      limit_(total_) {}

OrdinalMemory::StreamPools& OrdinalMemory::pools_of(Stream& stream) {
  c10::MempoolId_t id{0, 0};
  for (const Route& route : routes_) {
    if (!route.takes(stream.id())) continue;
    id = route.id;
    break;
  }
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

BlockPool& OrdinalMemory::pool_of(Stream& stream, size_t rounded) {
  StreamPools& pools = pools_of(stream);
  return rounded <= kSmallBytes ? pools.small : pools.large;
}

Block* OrdinalMemory::take(BlockPool& pool, size_t rounded) {
  const size_t blocks = pool.inactive_split_blocks();
  const size_t bytes = pool.inactive_split_bytes();
  Block* block = pool.take(rounded);
  if (block != nullptr) statistics_.remainders(pool, blocks, bytes);
  return block;
}

void* OrdinalMemory::allocate(size_t bytes, Stream& stream) {
  // Before any rounding, which could overflow.
  if (bytes > total_) fail(bytes);
  const size_t rounded = round_block(bytes);
  const size_t wanted = segment_bytes_for(rounded);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!pending_.empty()) release_completed();
    BlockPool& pool = pool_of(stream, rounded);
    Block* block = take(pool, rounded);
    if (block == nullptr && grow(pool, wanted)) block = take(pool, rounded);
    if (block != nullptr) return handed_out(block, bytes, lock);
    statistics_.retried();
  }
  empty_cache();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    BlockPool& pool = pool_of(stream, rounded);
    // Waiting may have brought back a block that fits.
    Block* block = take(pool, rounded);
    if (block == nullptr && grow(pool, wanted)) block = take(pool, rounded);
    if (block != nullptr) return handed_out(block, bytes, lock);
  }
  fail(bytes);
}

void* OrdinalMemory::handed_out(Block* block, size_t bytes,
                                std::unique_lock<std::mutex>& lock) {
  block->requested = bytes;
  statistics_.handed_out(*block);
  void* pointer = block->pointer;
  report(pointer, static_cast<int64_t>(block->bytes), lock);
  return pointer;
}

void OrdinalMemory::report(void* pointer, int64_t bytes,
                           std::unique_lock<std::mutex>& lock) {
  const size_t allocated = statistics_.allocated_bytes();
  const size_t reserved = statistics_.reserved_bytes();
  lock.unlock();
  c10::reportMemoryUsageToProfiler(pointer, bytes, allocated, reserved,
                                   device_at(index_));
}

bool OrdinalMemory::grow(BlockPool& pool, size_t bytes) {
  if (statistics_.reserved_bytes() + bytes > limit_) return false;
  void* pointer = from_driver(bytes);
  if (pointer == nullptr) return false;
  Segment& segment = pool.add_segment(pointer, bytes, this);
  table_.add(&segment);
  statistics_.segment_made(segment);
  return true;
}

void* OrdinalMemory::from_driver(size_t bytes) {
  if (home_.is_cpu && bytes >= kLargeSegmentBytes) {
    // The system promises more memory than it has, and ends the process when the
    // promise is taken up.
    const HostMemory host = host_memory();
    if (host.total != 0 && bytes > host.free + host.swap) return nullptr;
  }
  try {
    // Device memory of a CPU is ordinary memory. Where another device shares the
    // host's address space, it is shared memory that both can touch.
    void* pointer = home_.host_accessible && !home_.is_cpu
                        ? sycl::malloc_shared(bytes, home_.device, home_.context)
                        : sycl::malloc_device(bytes, home_.device, home_.context);
    if (pointer != nullptr && home_.is_cpu) prefer_huge_pages(pointer, bytes);
    return pointer;
  } catch (const sycl::exception&) {
    return nullptr;  // some drivers throw instead
  }
}

void OrdinalMemory::free(Segment& segment, void* pointer) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  Block* block = segment.allocated_at(pointer);
  if (block == nullptr) return;
  block->allocated = false;
  statistics_.freed(*block);
  const auto bytes = static_cast<int64_t>(block->bytes);
  if (!block->users.empty()) {
    // Inactive only later, so nobody else touches the block meanwhile. Recording
    // takes the streams' locks, which come before ours.
    std::vector<void*> users = std::move(block->users);
    block->users.clear();
    lock.unlock();
    std::vector<sycl::event> events;
    for (void* user : users) {
      auto& stream = *static_cast<Stream*>(user);
      try {
        if (!stream.idle()) events.push_back(stream.record());
      } catch (const std::exception&) {
        // A queue that takes no event takes no work either; what it has taken is
        // waited for when the cache is emptied.
      }
    }
    lock.lock();
    add_pending(block, std::move(events));
  } else {
    release(block);
  }
  report(pointer, -bytes, lock);
}

void OrdinalMemory::add_pending(Block* block, std::vector<sycl::event> events) {
  if (events.empty()) return release(block);
  block->events = static_cast<uint32_t>(events.size());
  for (auto& event : events) pending_.push_back({std::move(event), block});
}

void OrdinalMemory::release(Block* block) {
  statistics_.inactive(*block);
  block->active = false;
  BlockPool& pool = *block->segment->pool;
  const size_t blocks = pool.inactive_split_blocks();
  const size_t bytes = pool.inactive_split_bytes();
  pool.give_back(block);
  statistics_.remainders(pool, blocks, bytes);
}

void OrdinalMemory::release_completed() {
  size_t kept = 0;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (!is_complete(pending_[i].done)) {
      if (kept != i) pending_[kept] = std::move(pending_[i]);
      ++kept;
    } else if (--pending_[i].block->events == 0) {
      release(pending_[i].block);
    }
  }
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(kept), pending_.end());
}

void OrdinalMemory::record_stream(Segment& segment, void* pointer, Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  Block* block = segment.allocated_at(pointer);
  if (block == nullptr) return;
  for (const auto& pools : pools_) {
    const bool ours = segment.pool == &pools->small || segment.pool == &pools->large;
    if (ours && &pools->stream == &stream) return;
  }
  auto& users = block->users;
  if (std::find(users.begin(), users.end(), &stream) == users.end()) {
    users.push_back(&stream);
  }
}

void OrdinalMemory::wait_for_pending() {
  std::vector<Pending> waited;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waited = pending_;
  }
  for (auto& each : waited) {
    try {
      each.done.wait();
    } catch (const sycl::exception&) {  // kept by its stream
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (!waited.empty()) statistics_.synchronized();
  release_completed();
}

std::vector<std::unique_ptr<Segment>> OrdinalMemory::take_free_segments(
    c10::MempoolId_t id) {
  std::vector<std::unique_ptr<Segment>> taken;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& pools : pools_) {
    const bool wanted = pools->id == id;
    if (!wanted && (id != c10::MempoolId_t{0, 0} || !is_released(pools->id))) {
      continue;
    }
    for (BlockPool* pool : {&pools->small, &pools->large}) {
      for (auto& segment : pool->take_free_segments()) {
        table_.remove(segment.get());
        statistics_.segment_dropped(*segment);
        taken.push_back(std::move(segment));
      }
    }
  }
  return taken;
}

void OrdinalMemory::forsake(void* pointer) {
  if (Segment* segment = table_.find(pointer)) free(*segment, pointer);
  for (auto& segment : take_free_segments({0, 0})) {
    sycl::free(segment->pointer, home_.context);
  }
}

void OrdinalMemory::empty_cache(c10::MempoolId_t id) {
  std::exception_ptr error;
  {
    WithoutGil released;
    // One at a time, so that a thread out of memory sees what another one frees.
    std::lock_guard<std::mutex> alone(emptying_);
    wait_for_pending();
    auto taken = take_free_segments(id);
    if (taken.empty()) return;
    // Each stream throws its kept error once, and Ctrl-C ends a wait early; all of
    // them must be waited for.
    for (bool waited = false; !waited;) {
      try {
        synchronize_device(index_);
        waited = true;
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
    for (auto& segment : taken) sycl::free(segment->pointer, home_.context);
  }
  if (error) std::rethrow_exception(error);
}

void OrdinalMemory::set_fraction(double fraction) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "invalid fraction: ", fraction,
                    "; a memory fraction is between 0 and 1");
  std::lock_guard<std::mutex> lock(mutex_);
  fraction_ = fraction;
  limit_ = static_cast<uint64_t>(fraction * static_cast<double>(total_));
}

OrdinalMemory::Amounts OrdinalMemory::amounts() {
  if (home_.is_cpu) {
    const HostMemory host = host_memory();
    if (host.total != 0) return {std::min(host.free, total_), total_};
  } else if (home_.device.has(sycl::aspect::ext_intel_free_memory)) {
    return {home_.device.get_info<sycl::ext::intel::info::device::free_memory>(),
            total_};
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t held = statistics_.reserved_bytes();
  return {total_ - std::min(held, total_), total_};
}

void OrdinalMemory::fail(size_t bytes) {
  const Amounts device = amounts();
  std::unique_lock<std::mutex> lock(mutex_);
  statistics_.out_of_memory();
  const size_t allocated = statistics_.allocated_bytes();
  const size_t reserved = statistics_.reserved_bytes();
  const size_t tensors = statistics_.live_blocks();
  const double fraction = fraction_;
  const uint64_t limit = limit_;
  lock.unlock();
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), allocated, reserved,
                                   device_at(index_));
  const auto largest = home_.device.get_info<sycl::info::device::max_mem_alloc_size>();
  std::ostringstream reason;
  if (bytes > total_) {
    reason << " That is more than the device has in all, whatever is freed.";
  } else if (fraction < 1 && reserved + round_block(bytes) > limit) {
    reason << " The memory fraction " << fraction << " allows " << format_size(limit)
           << " (" << limit << " bytes): raise it with "
           << "torch.xpu.set_per_process_memory_fraction, or free tensors.";
  } else if (bytes > largest) {
    reason << " The driver gives at most " << format_size(largest)
           << " in one piece: split the tensor.";
  } else {
    reason << " Free tensors, make the batch smaller, or end other programs that use "
              "the device.";
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "XPU out of memory. Tried to allocate ",
                   format_size(bytes), " (", bytes, " bytes) on ", device_at(index_),
                   ", ", home_.name, ": ", format_size(device.free), " of ",
                   format_size(device.total), " are free (", device.free,
                   " bytes). This process holds ", format_size(reserved), " (",
                   reserved, " bytes), ", format_size(allocated), " (", allocated,
                   " bytes) of them in ", tensors, " live storages.", reason.str());
}

}  // namespace xpurt
