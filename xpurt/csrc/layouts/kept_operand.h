// A weight or a bias whose conversion is kept.
#pragma once

#include <ATen/core/Tensor.h>

#include "layouts/watched_weights.h"

namespace xpurt {

class KeptOperand {
 public:
  // `is_converted`: what is kept is made of it; else it is the operand itself.
  KeptOperand(const at::Tensor& tensor, bool is_converted)
      : tensor_(tensor.getIntrusivePtr()),
        address_(tensor.unsafeGetTensorImpl()),
        version_(is_converted ? tensor._version() : 0),
        watch_(is_converted ? watch_weight(tensor) : 0),
        is_converted_(is_converted) {}

  // False if writes to it can't be noticed.
  bool is_kept() const { return !is_converted_ || watch_ != 0; }
  bool is(const at::Tensor& tensor) const {
    return tensor.unsafeGetTensorImpl() == address_ &&
           (!is_converted_ ||
            (tensor._version() == version_ && is_unwritten(tensor, watch_)));
  }

 private:
  // No other tensor has its address meanwhile.
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor_;
  const c10::TensorImpl* address_;
  uint32_t version_;
  uint64_t watch_;
  bool is_converted_;
};

}  // namespace xpurt
