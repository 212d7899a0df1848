// Host tensors of layouts with more than sizes and strides: sparse, quantized, nested.
// See Note [Host tensors].
#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>

#include "native/alias.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

bool is_coo(const at::Tensor& tensor) {
  return tensor.key_set().has(DispatchKey::Sparse);
}
bool is_compressed(const at::Tensor& tensor) {
  return tensor.key_set().has(DispatchKey::SparseCsr);
}

at::SparseTensorImpl* coo(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}
at::SparseCsrTensorImpl* compressed(const at::Tensor& tensor) {
  return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

// Fills a COO tensor with the parts of another, each through `part`.
template <typename Part>
void fill_coo(const at::Tensor& to, const at::Tensor& from, const Part& part) {
  const at::SparseTensorImpl* source = coo(from);
  coo(to)->raw_resize_(source->sparse_dim(), source->dense_dim(), source->sizes());
  const at::Tensor indices = part(source->indices());
  coo(to)->set_indices_and_values_unsafe(indices, part(source->values()));
  coo(to)->set_coalesced(source->coalesced());
}

template <typename Part>
void fill_compressed(const at::Tensor& to, const at::Tensor& from, const Part& part) {
  at::SparseCsrTensorImpl* source = compressed(from);
  const at::Tensor rows = part(source->compressed_indices());
  const at::Tensor columns = part(source->plain_indices());
  compressed(to)->set_member_tensors(rows, columns, part(source->values()),
                                     source->sizes());
}

DispatchKeySet xpu_keys(DispatchKeySet keys) {
  return keys.remove_backend(c10::BackendComponent::CPUBit) |
         DispatchKeySet(c10::BackendComponent::XPUBit);
}

// The keys for the constructor of a sparse tensor, which adds the autograd keys itself.
DispatchKeySet bare(DispatchKeySet keys) {
  return keys - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
}

template <typename Part>
at::Tensor made_like(const at::Tensor& from, c10::Device device, DispatchKeySet keys,
                     const Part& part) {
  if (is_coo(from)) {
    auto made = at::detail::make_tensor<at::SparseTensorImpl>(bare(keys), from.dtype());
    fill_coo(made, from, part);
    return made;
  }
  auto made = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      bare(keys), device, from.layout(), from.dtype());
  fill_compressed(made, from, part);
  return made;
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
  if (is_coo(tensor) || is_compressed(tensor)) {
    return made_like(tensor, c10::kCPU, keys,
                     [&](const at::Tensor& part) { return to_host(part, written); });
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
  if (is_coo(result) || is_compressed(result)) {
    return made_like(result, device_, xpu_keys(result.key_set()),
                     [&](const at::Tensor& part) { return to_xpu(part); });
  }
  const c10::Storage storage = result.storage();
  const HostStorage* known = find_host(storage.unsafeGetStorageImpl());
  relabel(result, known != nullptr ? known->original : to_xpu(storage));
  return result;
}

void HostCall::other_give_back(HostTensor& tensor) {
  const auto part = [&](const at::Tensor& t) { return to_xpu(t); };
  if (is_coo(tensor.original)) {
    fill_coo(tensor.original, tensor.host, part);
  } else if (is_compressed(tensor.original)) {
    fill_compressed(tensor.original, tensor.host, part);
  }
}

}  // namespace xpurt
