// Memory of an ordinal that is not cached: of other code, see MemorySource, or of the
// driver.
#include <c10/util/Exception.h>

#include "device/event_status.h"
#include "host/gil.h"
#include "memory/ordinal_memory.h"

namespace xpurt {

void* OrdinalMemory::from_source(const MemorySource& source, size_t bytes,
                                 Stream& stream) {
  TORCH_CHECK_VALUE(source.allocate != nullptr,
                    "the allocator has no function that allocates memory");
  sycl::queue& queue = stream.shared_queue();
  void* pointer = source.allocate(bytes, index_, &queue);
  if (pointer == nullptr) return nullptr;
  using sycl::usm::alloc;
  const alloc kind = sycl::get_pointer_type(pointer, home_.context);
  const bool usable =
      kind == alloc::unknown ? home_.system_usm
      // If the host computes in a GPU's memory, it has to be able to read it.
      : kind == alloc::device ? home_.is_cpu || !home_.host_accessible
                              : true;
  if (usable) return pointer;
  if (source.free != nullptr) source.free(pointer, bytes, index_, &queue);
  TORCH_CHECK(false,
              "the allocator returned memory that xpu:", static_cast<int>(index_), ", ",
              home_.name,
              ", cannot use: it is not unified shared memory of the context of the "
              "queue that was passed",
              kind == alloc::device ? ", or the host cannot read it" : "",
              ". Allocate it with sycl::malloc_shared(size, *queue).");
}

void OrdinalMemory::to_source(Segment& segment) noexcept {
  if (segment.source->free == nullptr) return;
  segment.source->free(segment.pointer, segment.bytes, index_,
                       static_cast<sycl::queue*>(segment.queue));
}

void* OrdinalMemory::allocate_uncached(const Request& request) {
  void* pointer = source_ != nullptr
                      ? from_source(*source_, request.bytes, request.stream)
                      : from_driver(request.bytes);
  if (pointer == nullptr) fail(request);
  std::unique_lock<Mutex> lock(mutex_);
  StreamPools& pools = pools_of(request.stream);
  add_segment(pools, pointer, request.bytes, request, source_);
  BlockPool& pool = pools.of(request.rounded);
  return handed_out(pool.take_whole(*pool.segments().back()), request, lock);
}

// The memory may go to any other code, so queued work must end first.
void OrdinalMemory::free_uncached(Block* block,
                                  std::unique_lock<Mutex>& lock) noexcept {
  Segment& segment = *block->segment;
  BlockPool& pool = *segment.pool;
  std::vector<void*> users = std::move(block->users);
  block->users.clear();
  users.push_back(&pools_of(pool).stream);
  void* const pointer = block->pointer;
  const auto bytes = static_cast<int64_t>(block->bytes);
  lock.unlock();
  {
    WithoutGil released;
    for (void* user : users) {
      try {
        wait_for_end(static_cast<Stream*>(user)->record());
      } catch (const std::exception&) {  // the stream keeps the error
      }
    }
  }
  lock.lock();
  release(block, nullptr);
  if (is_recording()) record(TraceEntry::SEGMENT_FREE, segment, segment.stack);
  table_.remove(&segment);
  statistics_.segment_dropped(segment);
  const std::unique_ptr<Segment> taken = pool.take_out(segment);
  report(pointer, -bytes, lock);
  give_back(*taken);
}

}  // namespace xpurt
