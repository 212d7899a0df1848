// The tensors of one call of an op as tensors of another device, and its results back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "host/api.h"
#include "native/alias.h"

namespace xpurt {

// Note [Exchanged calls]
// ~~~~~~~~~~~~~~~~~~~~~~
// An op that is called on one device, its own, may be computed by the kernels of an
// other one: xpu's by those of the CPU (HostCall), those of CPU tensors by rows
// (DeviceCall), a prototype's by those of the device behind it (RenamedCall). The
// operands are exchanged for tensors with the keys of the other device. Where that
// device can use the memory they are over the same bytes, else over a copy. The other
// form of a storage is made once per call, so that views still share it.
//
// After the kernel, written arguments get the new sizes, storages and memory of their
// other forms, copies are copied back, and results get the keys of the own device. A
// subclass has what differs: the memory.
struct ExchangedStorage {
  c10::Storage own;
  c10::Storage other;          // made at the first use
  const void* data = nullptr;  // of `other` when it was made: a change means a resize
  size_t bytes = 0;            // of `other` when it was made
  size_t begin = 0;            // the bytes of `own` that `other` covers
  size_t end = 0;
  bool is_copy = false;
  bool written = false;
};

struct ExchangedTensor {
  at::Tensor own;
  at::Tensor other;
  bool written;
};

class XPURT_API ExchangedCall {
 public:
  ExchangedCall(const ExchangedCall&) = delete;
  ExchangedCall& operator=(const ExchangedCall&) = delete;

  // The other form of a tensor of the own device. All others are returned unchanged.
  at::Tensor to_other(at::Tensor tensor, bool written);
  c10::Storage to_other(const c10::Storage& storage, bool written);

  // Called after the kernel: passes new sizes and storages on to the written arguments,
  // and copies the written bytes of copies back.
  void finish_arguments();

  // The own form of a tensor that the kernel returned: the argument itself, a view of
  // it, or the result. If its storage is relabeled in place, so is the tensor.
  at::Tensor to_own(at::Tensor result);

  uint64_t bytes_copied() const { return bytes_copied_; }

 protected:
  // `own`: the device of the results. `other`: has an index if the operands of all
  // devices of the own type have their other forms on devices of the same index.
  ExchangedCall(c10::Device own, c10::Device other, KeyExchange keys)
      : own_(own), other_(other), keys_(keys) {}
  ~ExchangedCall() = default;

  // Called for each use of a storage, before its other form is made. Returns whether
  // the storage got new bytes: a form that was made before still has the old ones.
  // `tensor`: the operand, or nullptr for the whole storage.
  virtual bool prepare(c10::StorageImpl&, const c10::TensorImpl* /*tensor*/,
                       bool /*written*/) {
    return false;
  }
  // Makes the other form of the bytes that are covered, or of all.
  virtual void make_other(ExchangedStorage& storage) = 0;
  // Copies what the kernel wrote to a copy back.
  virtual void write_back(ExchangedStorage&) {}
  // Moves the new memory of a written argument that the kernel resized to its storage.
  virtual void take_over(ExchangedStorage& storage);
  // The storage of the own device for new memory: `other` itself, or another one.
  virtual c10::Storage adopt(const c10::Storage& other) = 0;

  // `tensor`: as in prepare().
  ExchangedStorage& storage_of(const c10::Storage& own, const c10::TensorImpl* tensor,
                               bool written);
  // nullptr if it is the other form of no storage of the call.
  const ExchangedStorage* find_other(const c10::Storage& other) const;
  const ExchangedTensor* find_other(const at::Tensor& other) const;
  // The written tensors over a copy, if only their elements have changed there: none if
  // the kernel changed a tensor's sizes, or was given the storage itself.
  c10::SmallVector<const ExchangedTensor*, 4> written_in(
      const ExchangedStorage& storage) const;

  const c10::Device own_;
  const c10::Device other_;
  uint64_t bytes_copied_ = 0;
  c10::SmallVector<ExchangedStorage, 4> storages_;
  c10::SmallVector<ExchangedTensor, 6> tensors_;

 private:
  ExchangedStorage& exchanged(const c10::Storage& own, const c10::TensorImpl* tensor,
                              bool written);
  c10::Storage to_own(const c10::Storage& other);
  void give_back(const ExchangedTensor& tensor);

  const KeyExchange keys_;
};

}  // namespace xpurt
