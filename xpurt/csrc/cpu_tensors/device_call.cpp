#include "cpu_tensors/device_call.h"

#include <ATen/ops/clone.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>

#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "native/alias_storage.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

std::atomic<size_t> underway{0};

// Whether the storage is a block of the device allocator that nothing else uses.
bool is_own_block(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  return storage.use_count() == 1 &&
         !storage.unsafeGetStorageImpl()->has_materializer() &&
         (data.get() == nullptr || is_device_memory(data));
}

}  // namespace

size_t device_calls_underway() noexcept {
  return underway;
}

DeviceCall::DeviceCall(c10::DeviceIndex index)
    : ExchangedCall(c10::kCPU, {c10::DeviceType::XPU, index}, kXpuToHost.reversed()) {
  ++underway;
}

DeviceCall::~DeviceCall() {
  --underway;
}

bool DeviceCall::accepts(const at::Tensor& tensor) {
  if (!tensor.defined()) return true;
  return tensor.is_cpu() && tensor.layout() == c10::kStrided && is_plain(tensor) &&
         tensor.has_storage() && tensor.storage();
}

bool DeviceCall::prepare(c10::StorageImpl& own, const c10::TensorImpl*, bool written) {
  if (!written || !own.has_materializer()) return false;
  own.mutable_data();  // gives a copy-on-write storage bytes of its own
  return true;
}

void DeviceCall::make_other(ExchangedStorage& storage) {
  c10::StorageImpl* own = storage.own.unsafeGetStorageImpl();
  storage.begin = 0;
  storage.end = own->nbytes();
  storage.other = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), own->nbytes(), alias_data(own, other_),
      &device_allocator(), own->resizable());
}

// Labels memory of a row's result as memory of the CPU. An empty one has none.
c10::Storage DeviceCall::adopt(const c10::Storage& result) {
  c10::StorageImpl& storage = *result.unsafeGetStorageImpl();
  c10::DataPtr& data = storage._mutable_data_ptr_no_checks();
  storage.set_data_ptr_noswap(data.get() == nullptr
                                  ? c10::GetCPUAllocator()->allocate(0)
                                  : as_cpu_memory(std::move(data)));
  storage.set_allocator(c10::GetCPUAllocator());
  return result;
}

at::Tensor DeviceCall::to_own(at::Tensor result) {
  const bool is_new = result.defined() && result.is_xpu() &&
                      find_other(result) == nullptr &&
                      find_other(result.storage()) == nullptr;
  // The row may keep its result, or return a part of another one.
  if (is_new && (result.use_count() > 1 || !is_own_block(result.storage()))) {
    result = at::clone(result);
    current_stream(other_.index()).wait();
    TORCH_INTERNAL_ASSERT(is_own_block(result.storage()));
  }
  return ExchangedCall::to_own(std::move(result));
}

}  // namespace xpurt
