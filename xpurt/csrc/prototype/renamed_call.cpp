#include "prototype/renamed_call.h"

#include <ATen/quantized/QTensorImpl.h>

#include <algorithm>

#include "memory/element_span.h"
#include "native/alias.h"
#include "native/tensor_parts.h"
#include "op/stack_tensors.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKeySet;
using c10::IValue;
using c10::Storage;

// A tensor with the sizes of `of`, over another storage and with other keys.
Tensor with_storage(const Tensor& of, Storage storage, DispatchKeySet keys,
                    c10::Device device) {
  c10::TensorImpl* from = of.unsafeGetTensorImpl();
  Tensor made;
  if (of.is_nested()) {
    const at::native::NestedTensorImpl* nested = at::native::get_nested_tensor_impl(of);
    made = at::detail::make_tensor<at::native::NestedTensorImpl>(
        std::move(storage), keys, of.dtype(), nested->get_nested_sizes(),
        nested->get_nested_strides(), nested->get_storage_offsets());
    made.unsafeGetTensorImpl()->_change_backend_component_keys(device);
    return made;
  }
  if (of.is_quantized()) {
    made = at::detail::make_tensor<at::QTensorImpl>(
        std::move(storage), keys, of.dtype(), at::get_qtensorimpl(of)->quantizer());
  } else {
    made = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, std::move(storage), keys, from->dtype());
    if (from->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  return made;
}

}  // namespace

RenamedCall::RenamedCall(const PrototypeDevice& device, c10::Device own)
    : device_(device), own_(own) {}

RenamedCall::KnownStorage& RenamedCall::to_behind(const Storage& own) {
  for (KnownStorage& known : storages_) {
    if (known.own.is_alias_of(own)) return known;
  }
  KnownStorage& made = storages_.emplace_back(own, storage_behind(device_, own));
  if (device_.copies()) {
    made.copy = made.behind.data();
    bytes_copied_ += made.behind.nbytes();
  }
  return made;
}

// An op may have a tensor as two arguments, and write to the second one.
void RenamedCall::mark_written(const Tensor& own) {
  if (!device_.copies() || own.device().type() != device_.type()) return;
  if (is_coo(own)) {
    mark_written(coo(own)->indices());
    mark_written(coo(own)->values());
    return;
  }
  if (is_compressed(own)) {
    mark_written(compressed(own)->compressed_indices());
    mark_written(compressed(own)->plain_indices());
    mark_written(compressed(own)->values());
    return;
  }
  if (!own.has_storage()) return;
  const Storage& storage = own.storage();
  to_behind(storage).written.add(own.is_nested()
                                     ? Interval{0, storage.nbytes()}
                                     : element_span(*own.unsafeGetTensorImpl()));
}

Tensor RenamedCall::to_behind(const Tensor& own, bool written) {
  if (!own.defined()) return own;
  for (const KnownTensor& known : tensors_) {
    if (!known.own.is_same(own)) continue;
    if (written) mark_written(own);
    return known.behind;
  }
  if (own.device().type() != device_.type()) {
    // A result that is this tensor, or a view of it, stays where it is.
    tensors_.push_back({own, own});
    if (!has_parts(own) && own.has_storage()) {
      storages_.push_back({own.storage(), own.storage()});
    }
    return own;
  }
  const DispatchKeySet keys = device_.keys_behind(own.key_set());
  const c10::Device device = device_.behind(own.device());
  Tensor behind;
  if (has_parts(own)) {
    behind = made_of_parts(own, device, keys, [&](const Tensor& part) {
      return to_behind(part, written);
    });
  } else if (own.has_storage()) {
    behind = with_storage(own, to_behind(own.storage()).behind, keys, device);
    if (written) mark_written(own);
  } else {
    return own;
  }
  tensors_.push_back({own, behind});
  return behind;
}

IValue RenamedCall::to_behind(IValue value, bool written) {
  if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    return device.type() == device_.type() ? device_.behind(device) : device;
  }
  if (value.isStorage()) {
    const Storage storage = value.toStorage();
    if (storage.device_type() != device_.type()) return storage;
    return to_behind(storage).behind;
  }
  if (value.isGenerator()) {
    const at::Generator generator = value.toGenerator();
    return generator.device().type() == device_.type() ? generator_behind(generator)
                                                       : generator;
  }
  return with_tensors(
      std::move(value), [&](const Tensor& each) { return to_behind(each, written); },
      /*in_place=*/false);
}

void RenamedCall::mark_gradients() {
  for (const KnownTensor& each : tensors_) {
    if (each.own.is_same(each.behind) || !each.own.requires_grad()) continue;
    each.behind.set_requires_grad(true);
  }
}

void RenamedCall::finish(const KnownTensor& tensor) {
  if (tensor.own.is_same(tensor.behind)) return;
  if (has_parts(tensor.own)) {
    fill_parts(tensor.own, tensor.behind,
               [&](const Tensor& part) { return to_own(part); });
    return;
  }
  c10::TensorImpl* own = tensor.own.unsafeGetTensorImpl();
  c10::TensorImpl* behind = tensor.behind.unsafeGetTensorImpl();
  if (tensor.own.is_quantized()) {
    at::get_qtensorimpl(tensor.own)
        ->set_quantizer_(at::get_qtensorimpl(tensor.behind)->quantizer());
  }
  if (tensor.own.is_nested()) return;
  const Storage storage = to_own(behind->unsafe_storage());
  if (!storage.is_alias_of(own->unsafe_storage())) own->set_storage_keep_dtype(storage);
  if (own->sizes() != behind->sizes() || own->strides() != behind->strides() ||
      own->storage_offset() != behind->storage_offset()) {
    own->set_sizes_and_strides(behind->sizes(), behind->strides(),
                               behind->storage_offset());
  }
  if (behind->is_conj() != own->is_conj()) own->_set_conj(behind->is_conj());
  if (behind->is_neg() != own->is_neg()) own->_set_neg(behind->is_neg());
}

void RenamedCall::finish(const KnownStorage& known) {
  if (known.own.is_alias_of(known.behind)) return;
  c10::StorageImpl& own = *known.own.unsafeGetStorageImpl();
  const bool is_copy = known.copy != nullptr && known.behind.data() == known.copy &&
                       known.behind.nbytes() == own.nbytes();
  if (!is_copy) return follow(own, known.behind);
  const auto* from = static_cast<const char*>(known.copy);
  auto* to = static_cast<char*>(own.mutable_data());
  for (const Interval& each : known.written.inside({0, own.nbytes()})) {
    device_.sycl()->copy(known.own.device().index(), to + each.begin, from + each.begin,
                         each.size());
  }
}

void RenamedCall::finish_arguments() {
  for (const KnownStorage& known : storages_) finish(known);
  // finish() may make known storages, not tensors.
  for (const KnownTensor& each : tensors_) finish(each);
}

Storage RenamedCall::to_own(const Storage& behind) {
  for (const KnownStorage& known : storages_) {
    if (known.behind.is_alias_of(behind)) return known.own;
  }
  return storages_.emplace_back(own_storage(behind, own_), behind).own;
}

bool RenamedCall::is_foreign(const Storage& storage) const {
  return std::ranges::any_of(storages_, [&](const KnownStorage& known) {
    return known.own.is_alias_of(storage) && known.behind.is_alias_of(storage);
  });
}

Tensor RenamedCall::to_own(const Tensor& behind) {
  if (!behind.defined() || behind.device().type() != device_.type_behind()) {
    return behind;
  }
  for (const KnownTensor& known : tensors_) {
    if (known.behind.is_same(behind)) return known.own;
  }
  if (!has_parts(behind) && behind.has_storage() && is_foreign(behind.storage())) {
    return behind;
  }
  const DispatchKeySet keys = device_.own_keys(behind.key_set());
  if (has_parts(behind)) {
    return made_of_parts(behind, own_, keys,
                         [&](const Tensor& part) { return to_own(part); });
  }
  if (!behind.has_storage()) return behind;
  return with_storage(behind, to_own(behind.storage()), keys, own_);
}

IValue RenamedCall::to_own(IValue value) {
  return with_tensors(
      std::move(value), [&](const Tensor& each) { return to_own(each); },
      /*in_place=*/false);
}

}  // namespace xpurt
