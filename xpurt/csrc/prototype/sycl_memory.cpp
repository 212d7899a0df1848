#include "prototype/sycl_memory.h"

#include <c10/util/Exception.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "host/mutex.h"
#include "device/event_status.h"
#include "host/gil.h"
#include "host/waiting.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::StreamId;

// True once the process is exiting: the driver ends, and must not be called.
std::atomic<bool> driver_ends{false};

void end_before_driver() {
  static std::once_flag once;
  std::call_once(once, [] { std::atexit([] { driver_ends = true; }); });
}

// By the memory of a prototype and its device.
thread_local std::vector<std::pair<const void*, StreamId>> current_streams;

StreamId& current_stream_of(const void* device) {
  for (auto& [known, id] : current_streams) {
    if (known == device) return id;
  }
  return current_streams.emplace_back(device, 0).second;
}

struct UsmBlock {
  void* pointer;
  const sycl::context* context;
  const std::array<std::atomic<sycl::queue*>, SyclMemory::kStreams>* queues;
};

// Failed work no longer uses memory: the queue's next wait throws.
void free_block(void* address) {
  const std::unique_ptr<UsmBlock> block(static_cast<UsmBlock*>(address));
  if (driver_ends) return;
  for (const auto& each : *block->queues) {
    sycl::queue* queue = each.load(std::memory_order_acquire);
    try {
      if (queue == nullptr) continue;
      const sycl::event end = queue->ext_oneapi_submit_barrier();
      if (is_over(end)) continue;
      const WithoutGil released;
      wait_for_end(end);
    } catch (const sycl::exception&) {
      continue;
    }
  }
  sycl::free(block->pointer, *block->context);
}

}  // namespace

struct SyclMemory::Device {
  // Kernels of the host use it as their own memory.
  struct HostAllocator final : c10::Allocator {
    HostAllocator(const SyclMemory& memory, DeviceIndex index)
        : memory(memory), index(index) {}

    c10::DataPtr allocate(size_t bytes) override {
      return memory.allocate(index, bytes, c10::kCPU);
    }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      default_copy_data(to, from, bytes);
    }

    const SyclMemory& memory;
    const DeviceIndex index;
  };

  Device(const SyclMemory& memory, DeviceIndex index, const sycl::device& device,
         sycl::usm::alloc kind)
      : device(device),
        context(device.get_platform().khr_get_default_context()),
        kind(kind),
        on_host(memory, index) {
    mark = static_cast<char*>(sycl::malloc_device(1, device, context));
  }

  const sycl::device device;
  const sycl::context context;
  const sycl::usm::alloc kind;
  HostAllocator on_host;
  char* mark;  // events write to it
  std::array<std::once_flag, kStreams> once;
  std::array<std::atomic<sycl::queue*>, kStreams> queues{};  // live as the process
  std::atomic<uint32_t> streams_made{0};
};

SyclMemory::SyclMemory(const std::vector<sycl::device>& devices) {
  end_before_driver();
  for (const sycl::device& device : devices) {
    const auto name = device.get_info<sycl::info::device::name>();
    TORCH_CHECK_VALUE(device.has(sycl::aspect::usm_device_allocations), "the device ",
                      name,
                      " has no unified shared memory (USM). Take another one: "
                      "xpurt.physical_devices() lists them.");
    const bool is_shared =
        device.has(sycl::aspect::usm_shared_allocations) &&
        (device.is_cpu() || device.has(sycl::aspect::usm_system_allocations));
    is_host_accessible_ &= is_shared;
    devices_.push_back(std::make_unique<Device>(
        *this, static_cast<DeviceIndex>(devices_.size()), device,
        is_shared ? sycl::usm::alloc::shared : sycl::usm::alloc::device));
  }
}

c10::DataPtr SyclMemory::allocate(DeviceIndex index, size_t bytes,
                                  c10::Device label) const {
  if (bytes == 0) return {nullptr, label};
  constexpr size_t kAlignment = 64;
  const Device& on = device(index);
  void* pointer =
      sycl::aligned_alloc(kAlignment, bytes, on.device, on.context, on.kind);
  TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr, "no memory for ", bytes,
                   " bytes on ", on.device.get_info<sycl::info::device::name>(),
                   ", which has ",
                   on.device.get_info<sycl::info::device::global_mem_size>(),
                   " in all. Free tensors, or take smaller ones.");
  return {pointer, new UsmBlock{pointer, &on.context, &on.queues}, &free_block, label};
}

MemoryAmounts SyclMemory::amounts(DeviceIndex index,
                                  const std::function<uint64_t()>& held) const {
  const sycl::device& of = device(index).device;
  return memory_amounts(of, total_memory(of), held);
}

bool SyclMemory::is_owner_of(const c10::DataPtr& data) noexcept {
  return data.get() == nullptr || data.get_deleter() == &free_block;
}

c10::Allocator& SyclMemory::host_allocator(DeviceIndex index) const {
  return device(index).on_host;
}

void SyclMemory::copy(DeviceIndex index, void* to, const void* from,
                      size_t bytes) const {
  if (bytes == 0) return;
  sycl::queue& on = queue(index, current_stream(index));
  wait_for_event(on.memcpy(to, from, bytes));
}

void SyclMemory::wait(DeviceIndex index) const {
  sycl::queue* made = device(index).queues[current_stream(index)].load();
  if (made != nullptr) wait_for_queue(*made);
}

void SyclMemory::synchronize(DeviceIndex index) const {
  for (const auto& each : device(index).queues) {
    if (sycl::queue* made = each.load()) wait_for_queue(*made);
  }
}

StreamId SyclMemory::new_stream(DeviceIndex index) const {
  const uint32_t made = device(index).streams_made.fetch_add(1);
  return 1 + static_cast<StreamId>(made % (kStreams - 1));
}

StreamId SyclMemory::current_stream(DeviceIndex index) const {
  return current_stream_of(devices_[index].get());
}

StreamId SyclMemory::exchange_stream(DeviceIndex index, StreamId id) const {
  return std::exchange(current_stream_of(devices_[index].get()), id);
}

sycl::queue& SyclMemory::queue(DeviceIndex index, StreamId id) const {
  TORCH_CHECK_VALUE(id >= 0 && id < kStreams, "there is no stream ", id,
                    "; a device has the streams 0 to ", kStreams - 1,
                    ". torch.Stream(device) makes one.");
  Device& on = device(index);
  std::call_once(on.once[id], [&] {
    on.queues[id] = new sycl::queue(
        on.context, on.device,
        {sycl::property::queue::in_order(), sycl::property::queue::enable_profiling()});
  });
  return *on.queues[id];
}

sycl::event SyclMemory::mark(DeviceIndex index, StreamId id) const {
  return queue(index, id).memset(device(index).mark, 0, 1);
}

void wait_for_event(const sycl::event& event) {
  if (is_complete(event)) return;
  wait_for_device([event] { return is_complete(event); },
                  [event] { wait_for_end(event); });
}

void wait_for_queue(sycl::queue& queue) {
  wait_for_event(queue.ext_oneapi_submit_barrier());
}

bool is_done(sycl::queue& queue) {
  // In an empty queue a barrier is complete after some microseconds, or after some
  // milliseconds on a busy machine.
  constexpr std::chrono::milliseconds kPatience{20};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const sycl::event barrier = queue.ext_oneapi_submit_barrier();
  while (!is_complete(barrier)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace xpurt
