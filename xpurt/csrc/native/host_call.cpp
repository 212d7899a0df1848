#include "native/host_call.h"

#include "memory/allocator.h"
#include "memory/element_span.h"
#include "native/alias_storage.h"
#include "native/host_bytes.h"
#include "native/tensor_parts.h"
#include "stream/stream.h"

namespace xpurt {

HostCall::HostCall(c10::DeviceIndex index, bool may_block)
    : ExchangedCall({c10::DeviceType::XPU, index}, c10::kCPU, kXpuToHost),
      reads_(host_reads(index)),
      copies_(!reads_),
      writes_(may_block) {}

// Operands may be on other ordinals than the results.
bool HostCall::reads(c10::DeviceIndex index) const {
  return index == own_.index() ? reads_ : host_reads(index);
}

bool HostCall::prepare(c10::StorageImpl& own, const c10::TensorImpl* tensor,
                       bool written) {
  copies_ |= !reads(own.device().index());
  return ready_for_host(own, tensor, written, &writes_, &pending_);
}

void HostCall::make_other(ExchangedStorage& storage) {
  storage.is_copy = !reads(storage.own.device().index());
  if (storage.is_copy) return stage(storage);
  storage.begin = 0;
  storage.end = storage.own.nbytes();
  storage.other = alias_of(storage.own.unsafeGetStorageImpl());
}

void HostCall::announce(const at::Tensor& tensor, bool whole) {
  if (!tensor.defined() || !tensor.is_xpu()) return;
  if (has_parts(tensor)) {
    for_each_part(tensor, [&](const at::Tensor& part) { announce(part, true); });
    return;
  }
  if (!tensor.has_storage()) return;
  ExchangedStorage& storage = storage_of(tensor.storage(), nullptr, false);
  if (whole || !is_plain(tensor)) {
    storage.begin = 0;
    storage.end = tensor.storage().nbytes();
    return;
  }
  if (tensor.numel() == 0) return;
  // A range that starts at a multiple of 16 bytes starts at an element of any dtype.
  constexpr size_t kAlign = 16;
  const Interval span = element_span(*tensor.unsafeGetTensorImpl());
  storage.begin = std::min(storage.begin, span.begin / kAlign * kAlign);
  storage.end = std::max(storage.end, span.end);
}

void HostCall::wait() {
  Stream& stream = current_stream(own_.index());
  // Staged bytes are copied on the stream, so the whole stream is waited for.
  copies_ ? stream.wait() : stream.wait_for(pending_);
  for (const ExchangedStorage& storage : storages_) {
    const c10::DeviceIndex index = storage.own.device().index();
    if (index != own_.index()) current_stream(index).wait();
  }
}

c10::Storage HostCall::adopt(const c10::Storage& host) {
  c10::StorageImpl* impl = host.unsafeGetStorageImpl();
  if (impl->device_type() == c10::DeviceType::XPU || label_as(*impl, own_)) return host;
  c10::DataPtr& data = impl->_mutable_data_ptr_no_checks();
  const bool empty = data.get() == nullptr && impl->nbytes() == 0;
  if (!empty) return upload(host);
  data = device_allocator().allocate(0);
  data.unsafe_set_device(own_);
  impl->set_allocator(&device_allocator());
  return host;
}

}  // namespace xpurt
