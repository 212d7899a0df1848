// Makes xpu tensors of the CPU tensors of an op, over the same bytes, and back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace xpurt {

// Calls of rows on CPU tensors that are underway. They hold the mapping.
size_t device_calls_underway() noexcept;

// The xpu tensors of one run of one op: the reverse of HostCall. The ordinal is one CPU
// device that works in the host's memory, so nothing is copied.
class DeviceCall {
 public:
  explicit DeviceCall(c10::DeviceIndex index);
  ~DeviceCall();
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;

  // Whether a tensor has an xpu form: sizes and strides over one storage of the CPU. An
  // undefined tensor, and a number that Python wrapped, stays as it is.
  static bool accepts(const at::Tensor& tensor);

  // The xpu form of a tensor that is accepted.
  at::Tensor to_xpu(const at::Tensor& tensor, bool written);

  // Called after the work has ended. Passes new memory, sizes and strides on to the
  // written arguments.
  void finish_arguments();

  // The CPU form of a tensor that the row returned: the argument itself, a view of it,
  // or the result, which is relabeled in place.
  at::Tensor to_cpu(at::Tensor result) const;

 private:
  struct Aliased {
    c10::Storage original;
    c10::Storage alias;
    const void* data;  // of `alias` when it was made: a change means a resize
  };
  struct Converted {
    at::Tensor original;
    at::Tensor alias;
    bool written;
  };

  const c10::Storage& alias_of(const c10::Storage& original, bool written);
  const Aliased* find(const c10::StorageImpl* alias) const;

  const c10::Device device_;
  c10::SmallVector<Aliased, 4> storages_;
  c10::SmallVector<Converted, 4> tensors_;
};

}  // namespace xpurt
