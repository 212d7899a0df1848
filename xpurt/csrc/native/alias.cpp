#include "native/alias.h"

#include <ATen/quantized/QTensorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include "device/device.h"
#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/element_span.h"
#include "memory/replica/replica.h"
#include "native/alias_storage.h"
#include "native/host_bytes.h"

namespace xpurt {

using c10::BackendComponent;
using c10::DispatchKey;
using c10::DispatchKeySet;

bool host_reads(c10::DeviceIndex index) {
  return ordinal(index).home_device().host_accessible;
}

DispatchKeySet host_keys(DispatchKeySet keys) {
  constexpr DispatchKeySet gone(
      {DispatchKey::AutocastXPU, DispatchKey::Python, DispatchKey::PythonTLSSnapshot});
  return (keys.remove_backend(BackendComponent::XPUBit) |
          DispatchKeySet(BackendComponent::CPUBit)) -
         gone;
}

void relabel(const at::Tensor& tensor, c10::Storage storage) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::Device device = storage.device();
  const bool allowed = impl->allow_tensor_metadata_change();
  impl->set_allow_tensor_metadata_change(true);
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_allow_tensor_metadata_change(allowed);
  impl->_change_backend_component_keys(device);
}

at::Tensor host_tensor(const c10::TensorImpl& original, c10::Storage storage,
                       int64_t offset) {
  auto host = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, std::move(storage), host_keys(original.key_set()),
      original.dtype());
  c10::TensorImpl* impl = host.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(original.sizes(), original.strides(), offset);
  if (original.is_wrapped_number()) impl->set_wrapped_number(true);
  return host;
}

namespace {

// Whether a result is a view for autograd. A kernel in Python may return one; it holds
// its base, a CPU tensor.
bool holds_base(const at::Tensor& result) {
  return torch::autograd::impl::get_view_autograd_meta(result) != nullptr;
}

at::Tensor without_base(const at::Tensor& result) {
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  auto copy = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(impl->unsafe_storage()), impl->key_set(),
      impl->dtype());
  copy.unsafeGetTensorImpl()->set_sizes_and_strides(impl->sizes(), impl->strides(),
                                                    impl->storage_offset());
  return copy;
}

}  // namespace

HostCall::HostCall(c10::DeviceIndex index, bool may_block)
    : device_(c10::DeviceType::XPU, index),
      reads_(host_reads(index)),
      copies_(!reads_),
      writes_(may_block) {}

HostStorage& HostCall::storage_of(const c10::Storage& original,
                                  const c10::TensorImpl* tensor, bool written) {
  c10::StorageImpl* impl = original.unsafeGetStorageImpl();
  const bool moved = ready_for_host(*impl, tensor, written, &writes_, &pending_);
  for (HostStorage& known : storages_) {
    if (known.original.unsafeGetStorageImpl() != impl) continue;
    known.written |= written;
    if (moved && known.host && !known.staged) {
      c10::StorageImpl* host = known.host.unsafeGetStorageImpl();
      host->clear_materializer();
      host->set_data_ptr_noswap(alias_data(impl));
      known.data = impl->data();
    }
    return known;
  }
  HostStorage made;
  made.original = original;
  made.written = written;
  made.begin = SIZE_MAX;
  const c10::DeviceIndex index = original.device().index();
  made.staged = index == device_.index() ? !reads_ : !host_reads(index);
  copies_ |= made.staged;
  storages_.push_back(std::move(made));
  return storages_.back();
}

void HostCall::alias(HostStorage& storage) {
  c10::StorageImpl* original = storage.original.unsafeGetStorageImpl();
  storage.begin = 0;
  storage.end = original->nbytes();
  storage.host = alias_of(original);
}

void HostCall::announce(const at::Tensor& tensor, bool whole) {
  if (!tensor.defined() || !tensor.is_xpu()) return;
  if (!is_plain(tensor)) return announce_parts(tensor);
  if (!tensor.has_storage()) return;
  HostStorage& storage = storage_of(tensor.storage(), nullptr, false);
  if (whole) {
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

at::Tensor HostCall::to_host(at::Tensor tensor, bool written) {
  if (!tensor.defined() || !tensor.is_xpu()) return tensor;
  for (HostTensor& known : tensors_) {
    if (!known.original.is_same(tensor)) continue;
    known.written |= written;
    if (written && is_plain(tensor)) {
      storage_of(tensor.storage(), tensor.unsafeGetTensorImpl(), true);
    }
    return known.host;
  }
  if (!is_plain(tensor)) {
    at::Tensor host = other_to_host(tensor, written);
    tensors_.push_back({std::move(tensor), host, written});
    return host;
  }
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  HostStorage& storage = storage_of(tensor.storage(), impl, written);
  if (!storage.host) {
    storage.staged ? stage(storage) : alias(storage);
    storage.data = storage.host.data();
    storage.bytes = storage.host.nbytes();
  }
  const auto begin = static_cast<int64_t>(storage.begin / impl->dtype().itemsize());
  const int64_t offset = std::max<int64_t>(impl->storage_offset() - begin, 0);
  const at::Tensor host = host_tensor(*impl, storage.host, offset);
  tensors_.push_back({std::move(tensor), host, written});
  return host;
}

c10::Storage HostCall::to_host(const c10::Storage& original, bool written) {
  if (original.device_type() != c10::DeviceType::XPU) return original;
  HostStorage& storage = storage_of(original, nullptr, written);
  if (!storage.host) {
    storage.begin = 0;
    storage.end = original.nbytes();
    storage.staged ? stage(storage) : alias(storage);
    storage.data = storage.host.data();
    storage.bytes = storage.host.nbytes();
  }
  return storage.host;
}

void HostCall::wait() {
  Stream& stream = current_stream(device_.index());
  // Staged bytes are copied on the stream, so the whole stream is waited for.
  copies_ ? stream.wait() : stream.wait_for(pending_);
  for (const HostStorage& storage : storages_) {
    const c10::DeviceIndex index = storage.original.device().index();
    if (index != device_.index()) current_stream(index).wait();
  }
}

// Moves the new memory of a written argument that a kernel resized to the xpu storage.
void HostCall::take_over(HostStorage& storage) {
  c10::StorageImpl* host = storage.host.unsafeGetStorageImpl();
  c10::StorageImpl* original = storage.original.unsafeGetStorageImpl();
  const c10::Storage moved = to_xpu(c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), host->nbytes(),
      std::move(host->_mutable_data_ptr_no_checks()), &switching_allocator(), true)));
  c10::StorageImpl* source = moved.unsafeGetStorageImpl();
  original->set_data_ptr_noswap(std::move(source->_mutable_data_ptr_no_checks()));
  original->set_nbytes(host->nbytes());
  // Other references to the host form then use the new memory.
  host->set_data_ptr_noswap(alias_data(original));
}

void HostCall::give_back(HostTensor& tensor) {
  const bool quantized = tensor.original.is_quantized();
  if (!is_plain(tensor.original) && !quantized) {
    other_give_back(tensor);
    return;
  }
  if (quantized) {
    // The kernel may have copied a tensor there, or set another storage.
    at::get_qtensorimpl(tensor.original)
        ->set_quantizer_(at::get_qtensorimpl(tensor.host)->quantizer());
  }
  c10::TensorImpl* original = tensor.original.unsafeGetTensorImpl();
  c10::TensorImpl* host = tensor.host.unsafeGetTensorImpl();
  const c10::Storage& host_storage = host->unsafe_storage();
  const HostStorage* known = find_host(host_storage.unsafeGetStorageImpl());
  int64_t offset = host->storage_offset();
  if (known != nullptr) {
    offset += static_cast<int64_t>(known->begin / host->dtype().itemsize());
    if (!known->original.is_alias_of(original->unsafe_storage())) {
      original->set_storage_keep_dtype(known->original);
    }
  } else {
    original->set_storage_keep_dtype(to_xpu(host_storage));
  }
  if (host->sizes() != original->sizes() || host->strides() != original->strides() ||
      (host->numel() != 0 && offset != original->storage_offset())) {
    original->set_sizes_and_strides(host->sizes(), host->strides(), offset);
  }
  // Some kernels write conjugated values and set the conjugate bit.
  if (host->is_conj() != original->is_conj()) original->_set_conj(host->is_conj());
  if (host->is_neg() != original->is_neg()) original->_set_neg(host->is_neg());
}

void HostCall::finish_arguments() {
  for (HostStorage& storage : storages_) {
    if (!storage.written || !storage.host) continue;
    c10::StorageImpl* host = storage.host.unsafeGetStorageImpl();
    if (host->data() != storage.data || host->nbytes() != storage.bytes) {
      take_over(storage);
    } else if (storage.staged) {
      write_back(storage);
    }
  }
  for (HostTensor& tensor : tensors_) {
    if (tensor.written) give_back(tensor);
  }
}

const HostStorage* HostCall::find_host(const c10::StorageImpl* host) const {
  if (host == nullptr) return nullptr;
  for (const HostStorage& known : storages_) {
    if (known.host.unsafeGetStorageImpl() == host) return &known;
  }
  return nullptr;
}

c10::Storage HostCall::to_xpu(const c10::Storage& storage) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  if (impl->device_type() == c10::DeviceType::XPU) return storage;
  if (label_as(*impl, device_)) return storage;
  c10::DataPtr& data = impl->_mutable_data_ptr_no_checks();
  const bool empty = data.get() == nullptr && impl->nbytes() == 0;
  if (!empty) return upload(storage);
  data = device_allocator().allocate(0);
  data.unsafe_set_device(device_);
  impl->set_allocator(&device_allocator());
  return storage;
}

at::Tensor HostCall::to_xpu(at::Tensor result) {
  if (!result.defined() || !result.is_cpu()) return result;
  for (const HostTensor& known : tensors_) {
    if (known.host.is_same(result)) return known.original;
  }
  if (!is_plain(result)) return other_to_xpu(result);
  TORCH_CHECK_NOT_IMPLEMENTED(!result.is_mkldnn(),
                              "xpu tensors have no mkldnn layout, which the op's "
                              "result has on the CPU. Move its "
                              "operands to the CPU first: tensor.cpu()");
  if (!result.has_storage()) return result;
  if (holds_base(result)) result = without_base(result);
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  const c10::Storage& storage = impl->unsafe_storage();
  if (const HostStorage* known = find_host(storage.unsafeGetStorageImpl())) {
    const auto begin = static_cast<int64_t>(known->begin / impl->dtype().itemsize());
    if (begin != 0) impl->set_storage_offset(impl->storage_offset() + begin);
    relabel(result, known->original);
    return result;
  }
  if (!storage) {
    // No memory at all, as in an efficient zero tensor: a storage of 0 bytes holds the
    // device.
    relabel(result, c10::Storage(c10::make_intrusive<c10::StorageImpl>(
                        c10::StorageImpl::use_byte_size_t(), 0,
                        device_allocator().allocate(0), &device_allocator(), true)));
    return result;
  }
  c10::Storage moved = to_xpu(storage);
  const bool foreign = moved.unsafeGetStorageImpl() != storage.unsafeGetStorageImpl();
  if (foreign && result.use_count() > 1) {
    // Other code holds this CPU tensor, so it is not changed.
    result = without_base(result);
  }
  relabel(result, std::move(moved));
  return result;
}

}  // namespace xpurt
