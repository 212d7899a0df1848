// Tensors of another device over the bytes of a tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "device/device.h"

namespace xpurt {

// From the keys of a tensor on one device to those of the same tensor on another one.
struct KeyExchange {
  c10::BackendComponent from, to;

  c10::DispatchKeySet operator()(c10::DispatchKeySet keys) const {
    return (keys.remove_backend(from) | c10::DispatchKeySet(to)) -
           c10::getAutocastRelatedKeySetFromBackend(from) - c10::python_ks;
  }
  KeyExchange reversed() const { return {to, from}; }
};

constexpr KeyExchange kXpuToHost{c10::BackendComponent::XPUBit,
                                 c10::BackendComponent::CPUBit};

// The keys of an alias: those of the tensor, on the CPU.
c10::DispatchKeySet host_keys(c10::DispatchKeySet keys);

// Whether native kernels use tensors of xpu:index in place.
bool host_reads(c10::DeviceIndex index);

// Whether they are meant to: the same, but where a GPU does the work.
bool host_computes(c10::DeviceIndex index);

// Whether a tensor is only sizes and strides over one storage.
inline bool is_plain(c10::DispatchKeySet keys) {
  constexpr c10::DispatchKeySet others(
      {c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr,
       c10::DispatchKey::Quantized, c10::DispatchKey::NestedTensor});
  return !keys.has_any(others);
}
inline bool is_plain(const at::Tensor& tensor) {
  return is_plain(tensor.key_set());
}

// A tensor over `storage` with the sizes, strides, dtype and layout of `like`, which is
// not sparse. `offset`: in elements.
at::Tensor tensor_over(c10::Storage storage, const at::Tensor& like,
                       c10::DispatchKeySet keys, int64_t offset);

// A CPU tensor over the bytes of an xpu tensor.
at::Tensor alias_of(const at::Tensor& xpu);

// Makes a tensor one of another device, over `storage`, which is there.
void relabel(const at::Tensor& tensor, c10::Storage storage);

}  // namespace xpurt
