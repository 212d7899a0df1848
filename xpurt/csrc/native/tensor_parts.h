// Sparse tensors by their parts: indices and values, which are plain tensors.
#pragma once

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>

namespace xpurt {

inline bool is_coo(const at::Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::Sparse);
}
inline bool is_compressed(const at::Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::SparseCsr);
}
inline bool has_parts(const at::Tensor& tensor) {
  return is_coo(tensor) || is_compressed(tensor);
}

inline at::SparseTensorImpl* coo(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}
inline at::SparseCsrTensorImpl* compressed(const at::Tensor& tensor) {
  return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

template <typename Visit>
void for_each_part(const at::Tensor& tensor, const Visit& visit) {
  if (is_coo(tensor)) {
    visit(coo(tensor)->indices());
    visit(coo(tensor)->values());
  } else {
    visit(compressed(tensor)->compressed_indices());
    visit(compressed(tensor)->plain_indices());
    visit(compressed(tensor)->values());
  }
}

// Fills a sparse tensor with the parts of another one, each through `part`.
template <typename Part>
void fill_parts(const at::Tensor& to, const at::Tensor& from, const Part& part) {
  if (is_coo(from)) {
    const at::SparseTensorImpl* source = coo(from);
    coo(to)->raw_resize_(source->sparse_dim(), source->dense_dim(), source->sizes());
    const at::Tensor indices = part(source->indices());
    coo(to)->set_indices_and_values_unsafe(indices, part(source->values()));
    coo(to)->set_coalesced(source->coalesced());
    return;
  }
  at::SparseCsrTensorImpl* source = compressed(from);
  const at::Tensor rows = part(source->compressed_indices());
  const at::Tensor columns = part(source->plain_indices());
  compressed(to)->set_member_tensors(rows, columns, part(source->values()),
                                     source->sizes());
}

// A sparse tensor on another device, of the parts of `from`, each through `part`.
template <typename Part>
at::Tensor made_of_parts(const at::Tensor& from, c10::Device device,
                         c10::DispatchKeySet keys, const Part& part) {
  // The constructors add the autograd keys themselves.
  const c10::DispatchKeySet bare =
      keys - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  const at::Tensor made =
      is_coo(from) ? at::detail::make_tensor<at::SparseTensorImpl>(bare, from.dtype())
                   : at::detail::make_tensor<at::SparseCsrTensorImpl>(
                         bare, device, from.layout(), from.dtype());
  fill_parts(made, from, part);
  return made;
}

}  // namespace xpurt
