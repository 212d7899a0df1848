// Converts xpu tensors to CPU tensors for a native kernel, and back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "memory/replica/host_writes.h"
#include "stream/uses.h"

namespace xpurt {

// Note [Host tensors]
// ~~~~~~~~~~~~~~~~~~~
// A native kernel runs on host tensors. If the host can read the device's memory, a
// host tensor is an alias: a CPU tensor over the same bytes, which keeps the storage of
// the xpu tensor alive. Otherwise it is staged: the bytes are copied to the host before
// the kernel, and written bytes are copied back after it. In both cases the host form
// of a storage is made once per op, so that views still share it.
struct HostStorage {
  c10::Storage original;
  c10::Storage host;
  const void* data = nullptr;  // of `host` when it was made: a change means a resize
  size_t bytes = 0;            // of `host` when it was made
  size_t begin = 0;            // first byte of the original that `host` covers
  size_t end = 0;
  bool staged = false;
  bool written = false;
};

struct HostTensor {
  at::Tensor original;
  at::Tensor host;
  bool written;
};

// The host tensors of one run of one op.
class HostCall {
 public:
  // `index`: the ordinal of the results. `may_block`: see HostWrites.
  explicit HostCall(c10::DeviceIndex index, bool may_block = false);
  ~HostCall() = default;
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  // Whether some argument, or a result, has to be copied.
  bool copies() const { return copies_; }

  // Announces an argument before the first to_host(). A staged storage is copied once:
  // the range of the announced arguments, or all of it if `whole`, since the kernel may
  // resize it. Needed only if copies().
  void announce(const at::Tensor& tensor, bool whole);

  // The host form of an xpu tensor. CPU and undefined tensors are returned unchanged.
  at::Tensor to_host(at::Tensor tensor, bool written);
  c10::Storage to_host(const c10::Storage& storage, bool written);

  // Waits until the arguments' bytes can be used on the host. Called between the last
  // to_host() and the kernel.
  void wait();

  // Called after the kernel: passes new sizes and storages on to the written arguments,
  // and copies the written bytes of staged ones back.
  void finish_arguments();

  // The xpu form of a tensor that the kernel returned: the argument itself, a view of
  // it, or the result. A result in device memory is relabeled in place: it gets the
  // device and the dispatch keys of xpu.
  at::Tensor to_xpu(at::Tensor result);

  uint64_t bytes_copied() const { return bytes_copied_; }

 private:
  // `tensor`: nullptr for the whole storage.
  HostStorage& storage_of(const c10::Storage& original, const c10::TensorImpl* tensor,
                          bool written);
  const HostStorage* find_host(const c10::StorageImpl* host) const;
  void alias(HostStorage& storage);
  void stage(HostStorage& storage);                  // staging.cpp
  void write_back(HostStorage& storage);             // staging.cpp
  c10::Storage upload(const c10::Storage& storage);  // staging.cpp
  void take_over(HostStorage& storage);
  void give_back(HostTensor& tensor);
  c10::Storage to_xpu(const c10::Storage& storage);
  // alias_layouts.cpp
  void announce_parts(const at::Tensor& tensor);
  at::Tensor other_to_host(const at::Tensor& tensor, bool written);
  at::Tensor other_to_xpu(const at::Tensor& result);
  void other_give_back(HostTensor& tensor);

  c10::Device device_;
  bool reads_;  // whether the host reads the memory of device_
  bool copies_;
  uint64_t bytes_copied_ = 0;
  c10::SmallVector<HostStorage, 4> storages_;
  c10::SmallVector<HostTensor, 6> tensors_;
  Uses pending_;  // work that has to end before the host uses the arguments
  HostWrites writes_;
};

// Whether native kernels use tensors of xpu:index in place.
bool host_reads(c10::DeviceIndex index);

// The keys of an alias: those of the tensor, on the CPU.
c10::DispatchKeySet host_keys(c10::DispatchKeySet keys);

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

// A CPU tensor over the host form of an xpu tensor's storage; `offset` is in elements.
at::Tensor host_tensor(const c10::TensorImpl& original, c10::Storage storage,
                       int64_t offset);

// Makes a CPU tensor an xpu tensor over `storage`, which is on an xpu device.
void relabel(const at::Tensor& tensor, c10::Storage storage);

}  // namespace xpurt
