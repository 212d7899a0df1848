// Host tensors of layouts with more than sizes and strides: sparse, quantized, nested.
// See Note [Host tensors].
#include <ATen/quantized/QTensorImpl.h>

#include "native/alias.h"
#include "native/tensor_parts.h"

namespace xpurt {
namespace {

using c10::DispatchKeySet;

DispatchKeySet xpu_keys(DispatchKeySet keys) {
  return keys.remove_backend(c10::BackendComponent::CPUBit) |
         DispatchKeySet(c10::BackendComponent::XPUBit);
}

}  // namespace

void HostCall::announce_parts(const at::Tensor& tensor) {
  if (is_coo(tensor)) {
    announce(coo(tensor)->indices(), true);
    announce(coo(tensor)->values(), true);
  } else if (is_compressed(tensor)) {
    announce(compressed(tensor)->compressed_indices(), true);
    announce(compressed(tensor)->plain_indices(), true);
    announce(compressed(tensor)->values(), true);
  } else {
    // Nested and quantized tensors use their whole storage.
    HostStorage& storage = storage_of(tensor.storage(), nullptr, false);
    storage.begin = 0;
    storage.end = tensor.storage().nbytes();
  }
}

at::Tensor HostCall::other_to_host(const at::Tensor& tensor, bool written) {
  const DispatchKeySet keys = host_keys(tensor.key_set());
  if (has_parts(tensor)) {
    return made_of_parts(tensor, c10::kCPU, keys, [&](const at::Tensor& part) {
      return to_host(part, written);
    });
  }
  c10::Storage storage = to_host(tensor.storage(), written);
  if (tensor.is_nested()) {
    const at::native::NestedTensorImpl* nested =
        at::native::get_nested_tensor_impl(tensor);
    return at::detail::make_tensor<at::native::NestedTensorImpl>(
        std::move(storage), keys, tensor.dtype(), nested->get_nested_sizes(),
        nested->get_nested_strides(), nested->get_storage_offsets());
  }
  auto host = at::detail::make_tensor<at::QTensorImpl>(
      std::move(storage), keys, tensor.dtype(),
      at::get_qtensorimpl(tensor)->quantizer());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return host;
}

at::Tensor HostCall::other_to_xpu(const at::Tensor& result) {
  if (has_parts(result)) {
    return made_of_parts(result, device_, xpu_keys(result.key_set()),
                         [&](const at::Tensor& part) { return to_xpu(part); });
  }
  const c10::Storage storage = result.storage();
  const HostStorage* known = find_host(storage.unsafeGetStorageImpl());
  relabel(result, known != nullptr ? known->original : to_xpu(storage));
  return result;
}

void HostCall::other_give_back(HostTensor& tensor) {
  if (!has_parts(tensor.original)) return;
  fill_parts(tensor.original, tensor.host,
             [&](const at::Tensor& part) { return to_xpu(part); });
}

}  // namespace xpurt
