#include "native/alias.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>

#include "native/alias_storage.h"

namespace xpurt {

bool host_reads(c10::DeviceIndex index) {
  return ordinal(index).home_device().host_accessible;
}

bool host_computes(c10::DeviceIndex index) {
  return ordinal(index).working_device().host_accessible;
}

c10::DispatchKeySet host_keys(c10::DispatchKeySet keys) {
  return kXpuToHost(keys);
}

at::Tensor tensor_over(c10::Storage storage, const at::Tensor& like,
                       c10::DispatchKeySet keys, int64_t offset) {
  const c10::TensorImpl& from = *like.unsafeGetTensorImpl();
  at::Tensor made;
  if (C10_LIKELY(is_plain(from.key_set()))) {
    made = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, std::move(storage), keys, from.dtype());
    if (from.is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  } else if (like.is_quantized()) {
    made = at::detail::make_tensor<at::QTensorImpl>(
        std::move(storage), keys, from.dtype(), at::get_qtensorimpl(like)->quantizer());
  } else {
    const auto* nested = at::native::get_nested_tensor_impl(like);
    const c10::Device device = storage.device();
    made = at::detail::make_tensor<at::native::NestedTensorImpl>(
        std::move(storage), keys, from.dtype(), nested->get_nested_sizes(),
        nested->get_nested_strides(), nested->get_storage_offsets());
    made.unsafeGetTensorImpl()->_change_backend_component_keys(device);
    return made;
  }
  made.unsafeGetTensorImpl()->set_sizes_and_strides(from.sizes(), from.strides(),
                                                    offset);
  return made;
}

at::Tensor alias_of(const at::Tensor& xpu) {
  return tensor_over(alias_of(xpu.storage().unsafeGetStorageImpl()), xpu,
                     host_keys(xpu.key_set()), xpu.storage_offset());
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

}  // namespace xpurt
