#include "memory/allocator.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "host/mutex.h"
#include "memory/gpu_trace.h"
#include "memory/ordinal_memory.h"
#include "memory/pinned.h"
#include "memory/replica/replica.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

constexpr size_t kMaxCallbacks = 4;
using FreeCallback = void (*)(void*) noexcept;

std::atomic<bool> shut_down{false};

// Leaked: see Note [Leaked on purpose]. The memories of replaced mappings stay,
// emptied: other threads may still read them, and the next mapping with that device
// uses them.
struct Memories {
  SegmentTable table;
  std::array<std::atomic<OrdinalMemory*>, kMaxDevices> of_ordinal{};
  std::array<std::atomic<FreeCallback>, kMaxCallbacks> callbacks{};
  const MemorySource* source = nullptr;
  bool cached = true;
  Mutex mutex{Rank::memories};
  std::vector<std::unique_ptr<OrdinalMemory>> all;
};

Memories& memories() {
  static Memories* const leaked = [] {
    // At exit SYCL destroys its own objects: from then on no free may read an event.
    std::atexit([] { shut_down = true; });
    return new Memories;
  }();
  return *leaked;
}

// Requires the mutex. Returns an unused memory of an earlier placement, or a new one.
OrdinalMemory& memory_for(c10::DeviceIndex index, uint64_t epoch,
                          const PhysicalDevice& home) {
  auto& all = memories().all;
  for (auto& each : all) {
    if (each->index() == index && &each->home() == &home && each->begin_again(epoch)) {
      return *each;
    }
  }
  all.push_back(std::make_unique<OrdinalMemory>(index, epoch, home, memories().table,
                                                memories().source, memories().cached));
  return *all.back();
}

// The memory's first use under the placement of that epoch.
OrdinalMemory& open_memory_of(c10::DeviceIndex index, uint64_t epoch) {
  const Ordinal& device = ordinal(index);
  std::lock_guard<Mutex> lock(memories().mutex);
  auto& slot = memories().of_ordinal[index];
  OrdinalMemory* found = slot.load();
  if (found == nullptr || found->epoch() != epoch) {
    found = &memory_for(index, epoch, device.home_device());
    slot.store(found, std::memory_order_release);
  }
  return *found;
}

OrdinalMemory& memory_of(c10::DeviceIndex index) {
  const uint64_t epoch = placement().epoch;
  if (index < 0) index = current_device();
  if (C10_LIKELY(index >= 0 && index < kMaxDevices)) {
    OrdinalMemory* found = memories().of_ordinal[index].load(std::memory_order_acquire);
    if (found != nullptr && found->epoch() == epoch) return *found;
  }
  return open_memory_of(index, epoch);
}

template <typename F>
void each_memory(F&& apply) {
  if (in_bad_fork()) return;
  for (auto& slot : memories().of_ordinal) {
    if (OrdinalMemory* memory = slot.load()) apply(*memory);
  }
}

void free_block(void* pointer) {
  if (pointer == nullptr || in_bad_fork() ||
      shut_down.load(std::memory_order_relaxed)) {
    return;
  }
  Segment* segment = memories().table.find(pointer);
  if (segment == nullptr) return;
  for (auto& slot : memories().callbacks) {
    const FreeCallback callback = slot.load(std::memory_order_relaxed);
    if (callback == nullptr) break;
    callback(pointer);
  }
  static_cast<OrdinalMemory*>(segment->owner)->free(*segment, pointer);
  notify_tracer(&Tracer::trace_gpu_memory_deallocation, address_of(pointer));
}

void* allocate_on(c10::DeviceIndex index, size_t bytes) {
  for (;;) {
    // In this order, the stream is not older than the memory. It is not newer either,
    // if the memory's placement is still installed at the end. See Note [Use and
    // change].
    OrdinalMemory& memory = memory_of(index);
    const uint64_t epoch = memory.epoch();
    Stream& stream = current_stream(index);
    void* pointer = memory.allocate(bytes, stream);
    if (C10_LIKELY(is_installed(epoch))) {
      notify_tracer(&Tracer::trace_gpu_memory_allocation, address_of(pointer));
      return pointer;
    }
    // Before the lock, since a wait for the pointer's users may need the GIL.
    memory.give_up(pointer);
    std::lock_guard<Mutex> lock(memories().mutex);
    memory.abandon(epoch);
  }
}

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    void* pointer = bytes == 0 ? nullptr : allocate_on(index, bytes);
    return {pointer, pointer, &free_block, c10::Device(c10::DeviceType::XPU, index)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    // Complete on return: the caller may free the source, or use the copy on the host.
    bring_home_now(from);
    Stream& stream = current_stream();
    if (stream.ordinal().home_device().host_accessible) {
      stream.wait();
      std::memcpy(to, from, bytes);
    } else {
      stream.home_queue()->memcpy(to, from, bytes);
      stream.wait();
    }
  }

  bool initialized() override {
    return installed_placement() != nullptr && !in_bad_fork();
  }

  void emptyCache(c10::MempoolId_t pool) override {
    each_memory([&](OrdinalMemory& memory) { memory.empty_cache(pool); });
    if (!in_bad_fork()) release_replicas();
  }

  void recordStream(const c10::DataPtr& data, c10::Stream id) override {
    // By the data pointer: the deleter of a copy-on-write storage is another one.
    Segment* segment = memories().table.find(data.get());
    if (segment == nullptr) return;
    static_cast<OrdinalMemory*>(segment->owner)
        ->record_stream(*segment, data.get(), stream(id));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex index) override {
    return memory_of(index).stats();
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    memory_of(index).reset_accumulated_stats();
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    memory_of(index).reset_peak_stats();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const Ordinal& on = ordinal(index);
    const MemoryAmounts amounts =
        on.overflows ? working_memory(on) : memory_of(index).amounts();
    return {amounts.free, amounts.total};
  }
};

}  // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* const leaked = new CachingAllocator;
  return *leaked;
}

c10::DataPtr allocate_for_host(size_t bytes) {
  c10::DataPtr data = device_allocator().allocate(bytes);
  Stream& stream = current_stream(data.device().index());
  wait_for_new_memory(data.get(), bytes, stream);
  return data;
}

LiveMemory live_memory() noexcept {
  LiveMemory sum;
  each_memory([&](OrdinalMemory& memory) {
    const OrdinalMemory::Live live = memory.live();
    sum.storages += live.blocks;
    sum.bytes += live.bytes;
  });
  return sum;
}

c10::DeviceIndex device_of_pointer(const void* pointer) noexcept {
  const Segment* segment = memories().table.find(pointer);
  return segment == nullptr ? c10::DeviceIndex(-1)
                            : static_cast<OrdinalMemory*>(segment->owner)->index();
}

Extent block_of_pointer(const void* pointer) noexcept {
  if (in_bad_fork()) return {};
  Segment* segment = memories().table.find(pointer);
  if (segment == nullptr) return {};
  return static_cast<OrdinalMemory*>(segment->owner)->extent(*segment, pointer);
}

bool is_private(const void* pointer) noexcept {
  Segment* segment = memories().table.find(pointer);
  return segment != nullptr &&
         static_cast<OrdinalMemory*>(segment->owner)->is_private(*segment);
}

void on_free(FreeCallback callback) {
  std::lock_guard<Mutex> lock(memories().mutex);
  for (auto& slot : memories().callbacks) {
    if (slot.load() == callback) return;
    if (slot.load() != nullptr) continue;
    slot.store(callback);
    return;
  }
  TORCH_CHECK(false, "at most ", kMaxCallbacks, " callbacks can look at frees");
}

size_t releasing_bytes(c10::DeviceIndex index) {
  return memory_of(index).releasing_bytes();
}

double memory_fraction(c10::DeviceIndex index) {
  return memory_of(index).fraction();
}

void set_memory_fraction(c10::DeviceIndex index, double fraction) {
  memory_of(index).set_fraction(fraction);
}

void begin_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t pool,
                            std::function<bool(c10::Stream)> takes) {
  memory_of(index).begin_allocate_to_pool(pool, std::move(takes));
}

MemoryPool::MemoryPool(const MemorySource* source, bool made_by_user, bool use_on_oom)
    : memory_(memory_of(-1)), source_(source), id_(new_id(made_by_user)) {
  memory_.create_pool(id_, source, use_on_oom);
}

MemoryPool::~MemoryPool() {
  if (in_bad_fork() || shut_down.load(std::memory_order_relaxed)) return;
  try {
    memory_.release_pool(id_);
    // A graph may still have memory in the pool. During a capture nothing is freed: the
    // next empty_cache() frees it.
    if (use_count() == 0 && !capture_is_underway()) memory_.empty_cache(id_);
  } catch (const std::exception& error) {
    // The error that the next synchronization would have thrown.
    TORCH_WARN("queued work had failed when an xpu memory pool ended: ", error.what());
  }
}

c10::MempoolId_t MemoryPool::id() const {
  TORCH_CHECK(is_installed(memory_.epoch()),
              "the memory pool belongs to an xpu mapping that has been replaced. Make "
              "a new one.");
  return id_;
}

int MemoryPool::use_count() const {
  return memory_.pool_users(id_);
}

CapturePool::CapturePool(c10::MempoolId_t id, c10::Stream stream)
    : memory_(memory_of(stream.device_index())), id_(id) {
  memory_.begin_allocate_to_pool(id, [stream](c10::Stream at) { return at == stream; });
}

CapturePool::~CapturePool() {
  end();
  memory_.release_pool(id_);
}

void CapturePool::end() {
  if (!std::exchange(open_, false)) return;
  memory_.end_allocate_to_pool(id_);
}

c10::MempoolId_t MemoryPool::new_id(bool made_by_user) {
  static std::atomic<c10::CaptureId_t> of_users{1};
  static std::atomic<c10::CaptureId_t> of_others{1};
  if (made_by_user) return {0, of_users++};
  return {of_others++, 0};
}

void set_memory_source(const MemorySource* source) {
  std::lock_guard<Mutex> lock(memories().mutex);
  TORCH_CHECK(memories().all.empty(),
              "the allocator of xpu is in use already. Change it before xpu is used.");
  memories().source = source;
}

void set_memory_caching(bool on) {
  std::lock_guard<Mutex> lock(memories().mutex);
  memories().cached = on;
}

const MemorySource* memory_source() {
  return memories().source;
}

void end_allocate_to_pool(c10::DeviceIndex index, c10::MempoolId_t pool) {
  memory_of(index).end_allocate_to_pool(pool);
}

void release_pool(c10::DeviceIndex index, c10::MempoolId_t pool) {
  memory_of(index).release_pool(pool);
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> memory_snapshot(
    c10::MempoolId_t pool) {
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> all;
  each_memory([&](OrdinalMemory& memory) {
    for (auto& segment : memory.snapshot(pool)) all.push_back(std::move(segment));
  });
  return all;
}

void release_cached_memory() {
  each_memory([](OrdinalMemory& memory) { memory.empty_all_pools(); });
  if (!in_bad_fork()) release_replicas();
  release_pinned_memory();
}

}  // namespace xpurt

namespace {
const bool device_allocator_registered = [] {
  c10::SetAllocator(c10::DeviceType::XPU, &xpurt::device_allocator());
  return true;
}();
}  // namespace
