#include "native/lazy_copy.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/device_scope.h"
#include "host/errors.h"
#include "host/gil.h"
#include "host/mutex.h"
#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/lazy_memory.h"
#include "op/op_report.h"

namespace xpurt {
namespace {

// Two threads may copy the same tensor lazily at the same time, since for the caller a
// lazy copy is a read. Two threads may also be the first to write to it, each to a view
// of its own.
struct Changes {
  Mutex mutex{Rank::lazy_copies};
  Condition ended;
  std::vector<const c10::StorageImpl*> underway;  // a thread makes these private

  bool is_underway(const c10::StorageImpl* storage) const {
    return std::find(underway.begin(), underway.end(), storage) != underway.end();
  }
};
Changes& changes() {
  static auto* const leaked = new Changes;
  return *leaked;
}

// The lock, once no other thread makes the storage private.
std::unique_lock<Mutex> lock_for(const c10::StorageImpl* storage) {
  Changes& all = changes();
  std::unique_lock<Mutex> lock(all.mutex);
  while (C10_UNLIKELY(all.is_underway(storage))) {
    lock.unlock();
    {
      const WithoutGil released;  // the other thread may need it
      std::unique_lock<Mutex> waiting(all.mutex);
      all.ended.wait(waiting, [&] { return !all.is_underway(storage); });
    }
    lock.lock();
  }
  return lock;
}

// The deferred copy_ is counted here, where it happens.
c10::DataPtr copied(const LazyMemory& shared, c10::Device device) {
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  const uint64_t begin = ticks_now();
  c10::DataPtr made;
  if (device.is_xpu()) {
    const DeviceScope scope(device.index());
    made = allocate_for_host(shared.bytes());
  } else {
    // CPU memory is needed even within a native op on xpu, where results are allocated
    // as device memory.
    const ResultsOnDevice off(false);
    made = c10::GetCPUAllocator()->allocate(shared.bytes());
  }
  copy_bytes(made.get(), shared.data(), shared.bytes());
  if (const Placement* now = installed_placement(); now != nullptr && !in_bad_fork()) {
    const size_t index = device.is_xpu() ? device.index() : 0;
    count_op(record, Tier::native, now->ordinals[index].home_device().id,
             ticks_now() - begin, 0);
  }
  return made;
}

// Makes a storage private; without the lock, as that may wait for a device.
class Change {
 public:
  // Waits for another thread that does the same.
  explicit Change(c10::StorageImpl* storage) : storage_(storage) {
    const auto lock = lock_for(storage);
    // It may have got other memory meanwhile, by another thread or by a resize.
    if (!is_lazy(data())) return;
    changes().underway.push_back(storage);
    begun_ = true;
  }
  ~Change() {
    if (begun_) end(nullptr);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  bool begun() const { return begun_; }
  c10::DataPtr& data() const { return storage_->_mutable_data_ptr_no_checks(); }

  // Exchanges the memory, unless it is nullptr.
  void end(c10::DataPtr* own) noexcept {
    const std::lock_guard<Mutex> lock(changes().mutex);
    if (own != nullptr) std::swap(data(), *own);
    std::erase(changes().underway, storage_);
    begun_ = false;
    changes().ended.notify_all();
  }

 private:
  c10::StorageImpl* storage_;
  bool begun_ = false;
};

void make_private(c10::StorageImpl* storage) {
  Change change(storage);
  if (!change.begun()) return;
  TORCH_CHECK(!c10::ParallelGuard::is_enabled(),
              "a lazily copied tensor cannot be written to first in the midst of a "
              "parallel loop. Make it private before: tensor.data_ptr()");
  auto& shared = *static_cast<LazyMemory*>(change.data().get_context());
  const c10::Device device = change.data().device();
  const bool alone = shared.has_one_user() && shared.is_xpu() == device.is_xpu();
  c10::DataPtr own = alone ? shared.take() : copied(shared, device);
  change.end(&own);
}  // releases the shared memory

// A storage on `device` that shares the bytes of `source` until one of them is written.
c10::intrusive_ptr<c10::StorageImpl> borrowed_storage(c10::StorageImpl& source,
                                                      c10::Device device) {
  const auto lock = lock_for(&source);
  c10::DataPtr& data = source._mutable_data_ptr_no_checks();
  const c10::Device here = data.device();
  if (!is_lazy(data)) {
    const c10::DeviceIndex index = (here.is_xpu() ? here : device).index();
    auto* made = new LazyMemory(std::move(data), source.nbytes(), index);
    data = made->share(here);
    source.clear_materializer();  // may still be set after a resize
    source.set_materializer(&make_private);
  }
  auto& shared = *static_cast<LazyMemory*>(data.get_context());
  c10::Allocator* allocator =
      device.is_xpu() ? &device_allocator() : c10::GetCPUAllocator();
  auto result = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), source.nbytes(), shared.share(device),
      allocator, /*resizable=*/true);
  result->set_materializer(&make_private);
  return result;
}

}  // namespace

c10::Storage lazy_copy(c10::StorageImpl& source, c10::Device device) {
  const uint64_t epoch = placement().epoch;
  auto result = borrowed_storage(source, device);
  if (!is_installed(epoch)) {  // see Note [Use and change]
    throw_mapping_error(
        "another thread has changed the xpu mapping meanwhile. Try again.");
  }
  return c10::Storage(std::move(result));
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;                       // the pointers may be null
  constexpr int64_t kWorthAThread = 128 << 10;  // bytes; the same as PyTorch's copies
  if (bytes <= kWorthAThread) {
    std::memcpy(to, from, bytes);
    return;
  }
  at::parallel_for(0, static_cast<int64_t>(bytes), kWorthAThread,
                   [&](int64_t begin, int64_t end) {
                     std::memcpy(static_cast<char*>(to) + begin,
                                 static_cast<const char*>(from) + begin, end - begin);
                   });
}

}  // namespace xpurt
