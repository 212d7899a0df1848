#include "memory/pinned.h"

// PyTorch's header causes this warning.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winterference-size"
#include <ATen/core/CachingHostAllocator.h>
#pragma GCC diagnostic pop
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "device/event_status.h"
#include "host/mutex.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

std::atomic<bool> pinned_shut_down{false};

bool past_use() {
  return in_bad_fork() || pinned_shut_down.load(std::memory_order_relaxed);
}

// PyTorch's cache of host blocks, over SYCL's host memory. For a block that a
// non_blocking copy uses (record_event), events are recorded at its free. The block is
// handed out again when these events are complete.
class PinnedMemory final
    : public at::CachingHostAllocatorImpl<c10::Stream, sycl::event> {
  using Base = at::CachingHostAllocatorImpl<c10::Stream, sycl::event>;
  using Block = at::HostBlock<c10::Stream>;

 public:
  void free(void* context) override {
    if (context == nullptr || past_use()) return;
    const bool stale = is_stale(static_cast<Block*>(context)->ptr_);
    Base::free(context);
    // Memory of a replaced mapping is in another context: later copies cannot use it.
    if (stale) empty_cache();
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

  bool contains(const void* pointer) noexcept {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    std::shared_lock<SharedMutex> lock(mutex_);
    auto after = pieces_.upper_bound(address);
    if (after == pieces_.begin()) return false;
    const auto& [start, piece] = *--after;
    return address < start + piece.bytes;
  }

 private:
  struct Piece {
    size_t bytes;
    sycl::context context;
  };

  bool is_stale(void* pointer) {
    const Placement* now = installed_placement();
    if (now == nullptr) return true;
    std::shared_lock<SharedMutex> lock(mutex_);
    const auto found = pieces_.find(reinterpret_cast<uintptr_t>(pointer));
    if (found == pieces_.end()) return false;
    for (const Ordinal& each : now->ordinals) {
      if (each.home_device().context == found->second.context) return false;
    }
    return true;
  }

  void allocate_host_memory(size_t bytes, void** pointer) override {
    const PhysicalDevice& home = ordinal(current_device()).home_device();
    *pointer = from_driver(bytes, home.context);
    if (*pointer == nullptr) {
      empty_cache();
      *pointer = from_driver(bytes, home.context);
    }
    TORCH_CHECK_WITH(OutOfMemoryError, *pointer != nullptr,
                     "Pinned host memory is out of memory. Tried to allocate ", bytes,
                     " bytes in the context of ", home.name,
                     ". Free pinned tensors, or use DataLoader(pin_memory=False).");
    std::unique_lock<SharedMutex> lock(mutex_);
    pieces_.emplace(reinterpret_cast<uintptr_t>(*pointer), Piece{bytes, home.context});
  }

  static void* from_driver(size_t bytes, const sycl::context& context) {
    try {
      return sycl::malloc_host(bytes, context);
    } catch (const sycl::exception&) {
      return nullptr;
    }
  }

  void free_block(Block* block) override {
    std::unique_lock<SharedMutex> lock(mutex_);
    const auto found = pieces_.find(reinterpret_cast<uintptr_t>(block->ptr_));
    if (found == pieces_.end()) return;
    const sycl::context context = found->second.context;
    pieces_.erase(found);
    lock.unlock();
    sycl::free(block->ptr_, context);
  }

  void record_stream(std::optional<std::vector<sycl::event>>& events,
                     c10::Stream id) override {
    // If no event can be recorded, the work has ended: a mapping is replaced after all
    // of its work, and a queue that rejects an event has failed.
    sycl::event complete;
    try {
      events->push_back(stream(id).record());
    } catch (const std::exception&) {
      events->push_back(complete);
    }
  }

  bool query_event(sycl::event& event) override { return is_over(event); }

  c10::Stream get_current_stream() const override { return current_stream_id(); }
  bool stream_is_capturing(c10::Stream) const override { return false; }

  SharedMutex mutex_{Rank::pinned_memory};
  std::map<uintptr_t, Piece> pieces_;  // by address
};

void free_pinned(void* context);

struct PinnedAllocator final
    : at::CachingHostAllocatorInterface<PinnedMemory, &free_pinned> {};

PinnedAllocator& instance() {
  // Leaked: see Note [Leaked on purpose].
  static PinnedAllocator* const leaked = [] {
    std::atexit([] { pinned_shut_down = true; });
    return new PinnedAllocator;
  }();
  return *leaked;
}

void free_pinned(void* context) {
  instance().free(context);
}

}  // namespace

c10::Allocator& pinned_allocator() {
  return instance();
}

bool record_pinned_use(const c10::DataPtr& data, c10::Stream stream) {
  if (!is_pinned(data.get())) return false;
  return instance().record_event(data.get(), data.get_context(), stream);
}

bool is_pinned(const void* pointer) noexcept {
  return !in_bad_fork() && instance().impl_->contains(pointer);
}

void release_pinned_memory() {
  if (!past_use()) instance().empty_cache();
}

}  // namespace xpurt

namespace {
const bool host_allocator_registered = [] {
  at::setHostAllocator(c10::DeviceType::XPU,
                       static_cast<at::HostAllocator*>(&xpurt::pinned_allocator()));
  return true;
}();
}  // namespace
