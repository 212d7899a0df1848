// The arguments and results of one op on a prototype device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include "host/intervals.h"
#include "prototype/prototype_device.h"

namespace xpurt {

class RenamedCall {
 public:
  // `own`: the device of the results.
  RenamedCall(const PrototypeDevice& device, c10::Device own);

  // The tensor, storage, device or generator of the device behind that stands for one
  // of the prototype. Other values are returned as they are. `written`: whether the op
  // may write to it.
  c10::IValue to_behind(c10::IValue value, bool written);

  // The tensors of the device behind require gradients where their own do.
  void mark_gradients();

  // Called after the op: its arguments get the new sizes, strides and storages.
  void finish_arguments();

  // The result under the prototype's name: the argument itself, a view of it, or a new
  // tensor.
  c10::IValue to_own(c10::IValue value);

  // To and from memory that the host can't read, without that of results.
  uint64_t bytes_copied() const { return bytes_copied_; }

 private:
  struct KnownTensor {
    at::Tensor own, behind;
  };
  struct KnownStorage {
    c10::Storage own, behind;
    const void* copy = nullptr;  // the bytes of `behind`, if they are a copy
    Intervals written;           // of the copy
  };

  at::Tensor to_behind(const at::Tensor& own, bool written);
  KnownStorage& to_behind(const c10::Storage& own);
  void mark_written(const at::Tensor& own);
  at::Tensor to_own(const at::Tensor& behind);
  c10::Storage to_own(const c10::Storage& behind);
  // Whether it belongs to an argument that is not on the prototype.
  bool is_foreign(const c10::Storage& storage) const;
  void finish(const KnownStorage& storage);
  void finish(const KnownTensor& tensor);

  const PrototypeDevice& device_;
  const c10::Device own_;
  c10::SmallVector<KnownTensor, 6> tensors_;
  c10::SmallVector<KnownStorage, 4> storages_;
  uint64_t bytes_copied_ = 0;
};

}  // namespace xpurt
