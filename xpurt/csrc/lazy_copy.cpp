#include "lazy_copy.h"

#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ParallelGuard.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "allocator.h"
#include "capture.h"
#include "cpu_allocator.h"
#include "device_scope.h"
#include "errors.h"
#include "gil.h"
#include "op_report.h"

namespace xpurt {
namespace {

std::atomic<size_t> borrowed_storages{0};
std::atomic<size_t> borrowed_bytes{0};

// Two threads may copy the same tensor, which is reading to them.
std::mutex& making() {
  static auto* const leaked = new std::mutex;
  return *leaked;
}

// The memory, and how many storages read it.
class Shared {
 public:
  Shared(c10::DataPtr memory, size_t bytes, c10::DeviceIndex index)
      : memory_(std::move(memory)),
        bytes_(bytes),
        index_(index),
        epoch_(placement().epoch) {}

  void* data() const { return memory_.get(); }
  size_t bytes() const { return bytes_; }
  bool is_xpu() const { return memory_.device().is_xpu(); }
  bool has_one_user() const { return users_.load(std::memory_order_acquire) == 1; }
  void add() { ++users_; }
  void drop() noexcept {
    if (--users_ != 0) return;
    if (memory_) leave_to_readers();
    delete this;
  }

  // The memory, for the only storage that is left to go on with.
  c10::DataPtr take() {
    if (!is_xpu()) {
      wait_for_readers();
    } else {
      Stream& here = current_stream(index_);
      each_reader([&](Stream& stream) {
        if (&stream != &here) here.wait_event(stream.record());
      });
    }
    return std::move(memory_);
  }

 private:
  ~Shared() = default;

  // The streams on which work may be queued that reads the memory.
  template <typename F>
  void each_reader(const F& visit) {
    // Before a placement goes, all work is waited for.
    if (in_bad_fork() || is_exiting() || !is_installed(epoch_)) return;
    for (Stream* stream : busy_streams(index_)) {
      if (!is_capturing(*stream)) visit(*stream);
    }
  }

  void wait_for_readers() noexcept {
    const WithoutGil released;
    try {
      each_reader([](Stream& stream) {
        try {
          stream.record().wait();
        } catch (const std::exception&) {  // kept by the stream
        }
      });
    } catch (const std::exception&) {  // there are no streams any more
    }
  }

  void leave_to_readers() noexcept {
    if (!is_xpu()) return wait_for_readers();
    try {
      each_reader([this](Stream& stream) {
        device_allocator().recordStream(memory_, stream.id());
      });
    } catch (const std::exception&) {
      wait_for_readers();
    }
  }

  c10::DataPtr memory_;
  const size_t bytes_;
  const c10::DeviceIndex index_;  // of the ordinal that reads it
  const uint64_t epoch_;
  std::atomic<size_t> users_{0};
};

void drop_on_cpu(void* context) {
  static_cast<Shared*>(context)->drop();
}

void drop_on_xpu(void* context) {
  auto* shared = static_cast<Shared*>(context);
  if (!shared->is_xpu()) {
    --borrowed_storages;
    borrowed_bytes -= shared->bytes();
  }
  shared->drop();
}

c10::DataPtr share_of(Shared& shared, c10::Device device) {
  shared.add();
  if (!device.is_xpu()) return {shared.data(), &shared, &drop_on_cpu, device};
  if (!shared.is_xpu()) {
    ++borrowed_storages;
    borrowed_bytes += shared.bytes();
  }
  return {shared.data(), &shared, &drop_on_xpu, device};
}

bool is_lazy(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == &drop_on_cpu || data.get_deleter() == &drop_on_xpu;
}

// The copy_ that was put off is counted where it is made.
c10::DataPtr copied(const Shared& shared, c10::Device device) {
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  const uint64_t begin = ticks_now();
  c10::DataPtr made;
  if (device.is_xpu()) {
    const DeviceScope scope(device.index());
    made = allocate_for_host(shared.bytes());
  } else {
    // In the midst of a native op on xpu, too.
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

void make_private(c10::StorageImpl* storage) {
  c10::DataPtr& data = storage->_mutable_data_ptr_no_checks();
  if (!is_lazy(data)) return;  // it has been given other memory, as by a resize
  TORCH_CHECK(!c10::ParallelGuard::is_enabled(),
              "a lazily copied tensor cannot be written to first in the midst of a "
              "parallel loop. Make it private before: tensor.data_ptr()");
  auto& shared = *static_cast<Shared*>(data.get_context());
  const c10::Device device = data.device();
  const bool alone = shared.has_one_user() && shared.is_xpu() == device.is_xpu();
  c10::DataPtr own = alone ? shared.take() : copied(shared, device);
  data = std::move(own);  // and lets go of what was shared
}

}  // namespace

bool is_lazy(const c10::StorageImpl& storage) noexcept {
  return storage.has_materializer() && is_lazy(storage.data_ptr());
}

c10::Storage lazy_copy(c10::StorageImpl& source, c10::Device device) {
  const uint64_t epoch = placement().epoch;
  const std::lock_guard<std::mutex> lock(making());
  c10::DataPtr& data = source._mutable_data_ptr_no_checks();
  const c10::Device here = data.device();
  if (!is_lazy(data)) {
    const c10::DeviceIndex index = (here.is_xpu() ? here : device).index();
    auto* made = new Shared(std::move(data), source.nbytes(), index);
    data = share_of(*made, here);
    source.clear_materializer();  // a resize leaves it set
    source.set_materializer(&make_private);
  }
  auto& shared = *static_cast<Shared*>(data.get_context());
  c10::Allocator* allocator =
      device.is_xpu() ? &device_allocator() : c10::GetCPUAllocator();
  auto result = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), source.nbytes(), share_of(shared, device),
      allocator, /*resizable=*/true);
  result->set_materializer(&make_private);
  if (!is_installed(epoch)) {  // see Note [Use and change]
    throw_mapping_error(
        "another thread has changed the xpu mapping meanwhile. Try again.");
  }
  return c10::Storage(std::move(result));
}

LazilyBorrowed lazily_borrowed() noexcept {
  return {borrowed_storages.load(), borrowed_bytes.load()};
}

void copy_bytes(void* to, const void* from, size_t bytes) {
  constexpr int64_t kWorthAThread = 128 << 10;  // as PyTorch's own copies have it
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
