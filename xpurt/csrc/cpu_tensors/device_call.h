// Makes xpu tensors of the CPU tensors of an op, over the same bytes, and back.
#pragma once

#include "native/exchanged_call.h"

namespace xpurt {

// Calls of rows on CPU tensors that are underway. They hold the mapping.
size_t device_calls_underway() noexcept;

// The xpu tensors of one run of one op: see Note [Exchanged calls]. The ordinal is one
// CPU device that works in the host's memory, so nothing is copied.
class DeviceCall final : public ExchangedCall {
 public:
  explicit DeviceCall(c10::DeviceIndex index);
  ~DeviceCall();

  // Whether a tensor has an xpu form: sizes and strides over one storage of the CPU. An
  // undefined tensor, and a number that Python wrapped, stays as it is.
  static bool accepts(const at::Tensor& tensor);

  // Called after the work has ended.
  at::Tensor to_own(at::Tensor result);

 private:
  bool prepare(c10::StorageImpl& own, const c10::TensorImpl* tensor,
               bool written) override;
  void make_other(ExchangedStorage& storage) override;
  c10::Storage adopt(const c10::Storage& result) override;
};

}  // namespace xpurt
