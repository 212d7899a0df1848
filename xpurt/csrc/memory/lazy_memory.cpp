#include "memory/lazy_memory.h"

#include "device/event_status.h"
#include "host/gil.h"
#include "memory/allocator.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

std::atomic<size_t> borrowed_storages{0};
std::atomic<size_t> borrowed_bytes{0};

}  // namespace

LazyMemory::LazyMemory(c10::DataPtr memory, size_t bytes, c10::DeviceIndex index)
    : memory_(std::move(memory)),
      bytes_(bytes),
      index_(index),
      epoch_(placement().epoch) {}

c10::DataPtr LazyMemory::share(c10::Device device) {
  ++users_;
  if (!device.is_xpu()) return {data(), this, &drop_on_cpu, device};
  if (!is_xpu()) {
    ++borrowed_storages;
    borrowed_bytes += bytes_;
  }
  return {data(), this, &drop_on_xpu, device};
}

c10::DataPtr LazyMemory::take() {
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

void LazyMemory::drop_on_cpu(void* context) {
  static_cast<LazyMemory*>(context)->drop();
}

void LazyMemory::drop_on_xpu(void* context) {
  auto* memory = static_cast<LazyMemory*>(context);
  if (!memory->is_xpu()) {
    --borrowed_storages;
    borrowed_bytes -= memory->bytes();
  }
  memory->drop();
}

void LazyMemory::drop() noexcept {
  if (--users_ != 0) return;
  if (memory_) leave_to_readers();
  delete this;
}

// Visits the streams that may have queued work that reads the memory.
template <typename F>
void LazyMemory::each_reader(const F& visit) {
  // All work is waited for before a placement is removed.
  if (in_bad_fork() || is_exiting() || !is_installed(epoch_)) return;
  for (Stream* stream : busy_streams(index_)) {
    if (!is_capturing(*stream)) visit(*stream);
  }
}

void LazyMemory::wait_for_readers() noexcept {
  const WithoutGil released;
  try {
    each_reader([](Stream& stream) {
      try {
        wait_for_end(stream.record());
      } catch (const std::exception&) {  // the stream keeps the error
      }
    });
  } catch (const std::exception&) {  // the streams no longer exist
  }
}

void LazyMemory::leave_to_readers() noexcept {
  if (!is_xpu()) return wait_for_readers();
  try {
    each_reader([this](Stream& stream) {
      device_allocator().recordStream(memory_, stream.id());
    });
  } catch (const std::exception&) {
    wait_for_readers();
  }
}

bool is_lazy(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == &LazyMemory::drop_on_cpu ||
         data.get_deleter() == &LazyMemory::drop_on_xpu;
}

bool is_lazy(const c10::StorageImpl& storage) noexcept {
  return storage.has_materializer() && is_lazy(storage.data_ptr());
}

LazilyBorrowed lazily_borrowed() noexcept {
  return {borrowed_storages.load(), borrowed_bytes.load()};
}

}  // namespace xpurt
