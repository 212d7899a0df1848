#include "cpu_tensors/device_call.h"

#include <ATen/ops/clone.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>

#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "native/alias.h"
#include "native/alias_storage.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using c10::BackendComponent;
using c10::DispatchKey;
using c10::DispatchKeySet;

std::atomic<size_t> underway{0};

DispatchKeySet device_keys(DispatchKeySet keys) {
  constexpr DispatchKeySet gone(
      {DispatchKey::AutocastCPU, DispatchKey::Python, DispatchKey::PythonTLSSnapshot});
  return (keys.remove_backend(BackendComponent::CPUBit) |
          DispatchKeySet(BackendComponent::XPUBit)) -
         gone;
}

bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0 && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Memory of a row's result as memory of the CPU. An empty one has none.
c10::DataPtr cpu_memory_of(c10::StorageImpl& storage) {
  c10::DataPtr& data = storage._mutable_data_ptr_no_checks();
  if (data.get() == nullptr) return c10::GetCPUAllocator()->allocate(0);
  return as_cpu_memory(std::move(data));
}

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

DeviceCall::DeviceCall(c10::DeviceIndex index) : device_(c10::DeviceType::XPU, index) {
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

const c10::Storage& DeviceCall::alias_of(const c10::Storage& original, bool written) {
  c10::StorageImpl* impl = original.unsafeGetStorageImpl();
  // Gives a copy-on-write storage bytes of its own.
  if (written && impl->has_materializer()) impl->mutable_data();
  for (Aliased& known : storages_) {
    if (known.original.unsafeGetStorageImpl() != impl) continue;
    if (impl->data() != known.data) {
      known.data = impl->data();
      c10::DataPtr data = alias_data(impl);
      data.unsafe_set_device(device_);
      known.alias.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
    }
    return known.alias;
  }
  c10::DataPtr data = alias_data(impl);
  data.unsafe_set_device(device_);
  auto alias = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), impl->nbytes(), std::move(data),
      &device_allocator(), impl->resizable());
  storages_.push_back({original, c10::Storage(std::move(alias)), impl->data()});
  return storages_.back().alias;
}

at::Tensor DeviceCall::to_xpu(const at::Tensor& tensor, bool written) {
  if (!tensor.defined() || (is_number(tensor) && !written)) return tensor;
  for (Converted& known : tensors_) {
    if (!known.original.is_same(tensor)) continue;
    known.written |= written;
    if (written) alias_of(tensor.storage(), true);
    return known.alias;
  }
  const c10::TensorImpl& original = *tensor.unsafeGetTensorImpl();
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(alias_of(tensor.storage(), written)),
      device_keys(original.key_set()), original.dtype());
  alias.unsafeGetTensorImpl()->set_sizes_and_strides(
      original.sizes(), original.strides(), original.storage_offset());
  tensors_.push_back({tensor, alias, written});
  return alias;
}

const DeviceCall::Aliased* DeviceCall::find(const c10::StorageImpl* alias) const {
  for (const Aliased& known : storages_) {
    if (known.alias.unsafeGetStorageImpl() == alias) return &known;
  }
  return nullptr;
}

void DeviceCall::finish_arguments() {
  for (const Aliased& each : storages_) {
    c10::StorageImpl& alias = *each.alias.unsafeGetStorageImpl();
    if (alias.data() == each.data) continue;
    c10::StorageImpl& original = *each.original.unsafeGetStorageImpl();
    const size_t bytes = alias.nbytes();
    original.set_data_ptr_noswap(cpu_memory_of(alias));
    original.set_nbytes(bytes);
  }
  for (const Converted& each : tensors_) {
    if (!each.written) continue;
    c10::TensorImpl& original = *each.original.unsafeGetTensorImpl();
    const c10::TensorImpl& alias = *each.alias.unsafeGetTensorImpl();
    if (alias.sizes() != original.sizes() || alias.strides() != original.strides() ||
        alias.storage_offset() != original.storage_offset()) {
      original.set_sizes_and_strides(alias.sizes(), alias.strides(),
                                     alias.storage_offset());
    }
    if (alias.is_conj() != original.is_conj()) original._set_conj(alias.is_conj());
    if (alias.is_neg() != original.is_neg()) original._set_neg(alias.is_neg());
  }
}

at::Tensor DeviceCall::to_cpu(at::Tensor result) const {
  if (!result.defined() || !result.is_xpu()) return result;
  for (const Converted& known : tensors_) {
    if (known.alias.is_same(result)) return known.original;
  }
  if (const Aliased* known = find(result.storage().unsafeGetStorageImpl())) {
    relabel(result, known->original);
    return result;
  }
  // The row may keep its result, or return a part of another one.
  if (result.use_count() > 1 || !is_own_block(result.storage())) {
    result = at::clone(result);
    current_stream(device_.index()).wait();
    TORCH_INTERNAL_ASSERT(is_own_block(result.storage()));
  }
  c10::StorageImpl& storage = *result.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(cpu_memory_of(storage));
  storage.set_allocator(c10::GetCPUAllocator());
  relabel(result, c10::Storage(result.storage()));
  return result;
}

}  // namespace xpurt
