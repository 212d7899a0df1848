#include "native/exchanged_call.h"

#include <ATen/quantized/QTensorImpl.h>
#include <torch/csrc/autograd/variable.h>

#include "native/alias_storage.h"
#include "native/tensor_parts.h"

namespace xpurt {
namespace {

// Whether a result is a view for autograd. A kernel in Python may return one; it holds
// its base, a tensor of the other device.
bool holds_base(const at::Tensor& result) {
  return torch::autograd::impl::get_view_autograd_meta(result) != nullptr;
}

// The first element in a storage that has lost its first bytes.
int64_t elements_in(size_t bytes, const c10::TensorImpl& tensor) {
  return static_cast<int64_t>(bytes / tensor.dtype().itemsize());
}

// Nested and quantized tensors use their whole storage.
const c10::TensorImpl* operand_of(const at::Tensor& tensor) {
  return is_plain(tensor) ? tensor.unsafeGetTensorImpl() : nullptr;
}

// The same zeros on another device. They have no memory, which the key says.
at::Tensor zeros_on(c10::Device device, const at::Tensor& zeros,
                    c10::DispatchKeySet keys) {
  const size_t bytes = zeros.storage().nbytes();
  c10::Storage nothing(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, at::DataPtr(nullptr, device), nullptr,
      /*resizable=*/false));
  return tensor_over(std::move(nothing), zeros, keys, zeros.storage_offset());
}

}  // namespace

ExchangedStorage& ExchangedCall::storage_of(const c10::Storage& own,
                                            const c10::TensorImpl* tensor,
                                            bool written) {
  c10::StorageImpl* impl = own.unsafeGetStorageImpl();
  const bool moved = prepare(*impl, tensor, written);
  for (ExchangedStorage& known : storages_) {
    if (known.own.unsafeGetStorageImpl() != impl) continue;
    known.written |= written;
    if (moved && known.other && !known.is_copy) {
      c10::StorageImpl* other = known.other.unsafeGetStorageImpl();
      other->clear_materializer();
      other->set_data_ptr_noswap(alias_data(impl, other->device()));
      known.data = impl->data();
    }
    return known;
  }
  ExchangedStorage& made = storages_.emplace_back();
  made.own = own;
  made.begin = SIZE_MAX;
  made.written = written;
  return made;
}

ExchangedStorage& ExchangedCall::exchanged(const c10::Storage& own,
                                           const c10::TensorImpl* tensor,
                                           bool written) {
  ExchangedStorage& storage = storage_of(own, tensor, written);
  if (storage.other) return storage;
  if (tensor == nullptr) {
    storage.begin = 0;
    storage.end = own.nbytes();
  }
  make_other(storage);
  storage.data = storage.other.data();
  storage.bytes = storage.other.nbytes();
  return storage;
}

c10::Storage ExchangedCall::to_other(const c10::Storage& storage, bool written) {
  if (storage.device_type() != own_.type()) return storage;
  return exchanged(storage, nullptr, written).other;
}

at::Tensor ExchangedCall::to_other(at::Tensor tensor, bool written) {
  if (!tensor.defined() || tensor.device().type() != own_.type()) return tensor;
  for (ExchangedTensor& known : tensors_) {
    if (!known.own.is_same(tensor)) continue;
    const at::Tensor other = known.other;
    if (!written || known.written) return other;
    // The same tensor is an operand twice, and the second one is written.
    known.written = true;
    if (has_parts(tensor)) {
      for_each_part(tensor, [&](const at::Tensor& part) { to_other(part, true); });
    } else {
      storage_of(tensor.storage(), operand_of(tensor), true);
    }
    return other;
  }
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = keys_(impl->key_set());
  const c10::Device device(other_.type(),
                           other_.has_index() ? tensor.device().index() : -1);
  at::Tensor other;
  if (has_parts(tensor)) {
    other = made_of_parts(tensor, device, keys, [&](const at::Tensor& part) {
      return to_other(part, written);
    });
  } else if (!impl->has_storage()) {
    return tensor;
  } else if (tensor._is_zerotensor()) {
    other = zeros_on(device, tensor, keys);
  } else {
    const ExchangedStorage& storage =
        exchanged(impl->unsafe_storage(), operand_of(tensor), written);
    const int64_t skipped = elements_in(storage.begin, *impl);
    const int64_t offset = std::max<int64_t>(impl->storage_offset() - skipped, 0);
    other = tensor_over(storage.other, tensor, keys, offset);
  }
  tensors_.push_back({std::move(tensor), other, written});
  return other;
}

const ExchangedStorage* ExchangedCall::find_other(const c10::Storage& other) const {
  for (const ExchangedStorage& known : storages_) {
    if (known.other.unsafeGetStorageImpl() == other.unsafeGetStorageImpl()) {
      return &known;
    }
  }
  return nullptr;
}

const ExchangedTensor* ExchangedCall::find_other(const at::Tensor& other) const {
  for (const ExchangedTensor& known : tensors_) {
    if (known.other.is_same(other)) return &known;
  }
  return nullptr;
}

c10::SmallVector<const ExchangedTensor*, 4> ExchangedCall::written_in(
    const ExchangedStorage& storage) const {
  c10::SmallVector<const ExchangedTensor*, 4> written;
  for (const ExchangedTensor& each : tensors_) {
    if (!each.written || !each.own.has_storage() ||
        !each.own.storage().is_alias_of(storage.own)) {
      continue;
    }
    const bool has_kept_its_elements =
        is_plain(each.own) && each.other.has_storage() &&
        each.other.storage().is_alias_of(storage.other) &&
        each.other.sizes() == each.own.sizes() &&
        each.other.strides() == each.own.strides();
    if (!has_kept_its_elements) return {};
    written.push_back(&each);
  }
  return written;
}

void ExchangedCall::take_over(ExchangedStorage& storage) {
  c10::StorageImpl* other = storage.other.unsafeGetStorageImpl();
  c10::StorageImpl* own = storage.own.unsafeGetStorageImpl();
  const c10::Device device = other->device();
  const c10::Storage moved = adopt(c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), other->nbytes(),
      std::move(other->_mutable_data_ptr_no_checks()), other->allocator(), true)));
  c10::StorageImpl* source = moved.unsafeGetStorageImpl();
  own->set_data_ptr_noswap(std::move(source->_mutable_data_ptr_no_checks()));
  own->set_nbytes(other->nbytes());
  // Other references to the other form then use the new memory.
  other->set_data_ptr_noswap(alias_data(own, device));
}

void ExchangedCall::give_back(const ExchangedTensor& tensor) {
  if (has_parts(tensor.own)) {
    fill_parts(tensor.own, tensor.other,
               [&](const at::Tensor& part) { return to_own(part); });
    return;
  }
  if (tensor.own.is_nested()) return;
  if (tensor.own.is_quantized()) {
    // The kernel may have copied a tensor there, or set another storage.
    at::get_qtensorimpl(tensor.own)
        ->set_quantizer_(at::get_qtensorimpl(tensor.other)->quantizer());
  }
  c10::TensorImpl* own = tensor.own.unsafeGetTensorImpl();
  c10::TensorImpl* other = tensor.other.unsafeGetTensorImpl();
  int64_t offset = other->storage_offset();
  if (const ExchangedStorage* known = find_other(other->unsafe_storage())) {
    offset += elements_in(known->begin, *other);
    if (!known->own.is_alias_of(own->unsafe_storage())) {
      own->set_storage_keep_dtype(known->own);
    }
  } else {
    own->set_storage_keep_dtype(to_own(other->unsafe_storage()));
  }
  if (other->sizes() != own->sizes() || other->strides() != own->strides() ||
      (other->numel() != 0 && offset != own->storage_offset())) {
    own->set_sizes_and_strides(other->sizes(), other->strides(), offset);
  }
  // Some kernels write conjugated values and set the conjugate bit.
  if (other->is_conj() != own->is_conj()) own->_set_conj(other->is_conj());
  if (other->is_neg() != own->is_neg()) own->_set_neg(other->is_neg());
}

void ExchangedCall::finish_arguments() {
  for (ExchangedStorage& storage : storages_) {
    if (!storage.written || !storage.other) continue;
    const c10::StorageImpl* other = storage.other.unsafeGetStorageImpl();
    if (other->data() != storage.data || other->nbytes() != storage.bytes) {
      take_over(storage);
    } else if (storage.is_copy) {
      write_back(storage);
    }
  }
  for (const ExchangedTensor& tensor : tensors_) {
    if (tensor.written) give_back(tensor);
  }
}

// Results that share new memory of the other device still share it.
c10::Storage ExchangedCall::to_own(const c10::Storage& other) {
  c10::Storage own = adopt(other);
  if (own.unsafeGetStorageImpl() != other.unsafeGetStorageImpl()) {
    ExchangedStorage& made = storages_.emplace_back();
    made.own = own;
    made.other = other;
  }
  return own;
}

at::Tensor ExchangedCall::to_own(at::Tensor result) {
  if (!result.defined() || result.device().type() != other_.type()) return result;
  if (const ExchangedTensor* known = find_other(result)) return known->own;
  const c10::DispatchKeySet keys = keys_.reversed()(result.key_set()) |
                                   c10::getAutocastRelatedKeySetFromBackend(keys_.from);
  if (has_parts(result)) {
    return made_of_parts(result, own_, keys,
                         [&](const at::Tensor& part) { return to_own(part); });
  }
  if (!result.has_storage()) return result;
  if (result._is_zerotensor()) return zeros_on(own_, result, keys);
  const c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  const c10::Storage& storage = impl.unsafe_storage();
  int64_t offset = impl.storage_offset();
  c10::Storage own;
  if (const ExchangedStorage* known = find_other(storage)) {
    offset += elements_in(known->begin, impl);
    own = known->own;
  } else {
    own = to_own(storage);
  }
  const bool moves = own.unsafeGetStorageImpl() != storage.unsafeGetStorageImpl();
  if (moves || holds_base(result)) {
    return tensor_over(std::move(own), result, keys, offset);
  }
  relabel(result, std::move(own));
  return result;
}

}  // namespace xpurt
