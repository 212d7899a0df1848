// A weight or a bias of a call that is kept.
#pragma once

#include <ATen/core/Tensor.h>

#include "layouts/watched_weights.h"
#include "layouts/weak_tensor.h"

namespace xpurt {

class KeptOperand {
 public:
  // `watched`: the tensor, if what is kept is made of it, and is kept as long as this
  // lives; nullptr if it is the tensor itself.
  KeptOperand(const at::Tensor& tensor, const std::shared_ptr<WatchedWeight>& watched)
      : tensor_(tensor.getIntrusivePtr()),
        address_(tensor.unsafeGetTensorImpl()),
        is_converted_(watched != nullptr),
        watched_(watched) {}

  bool is(const at::Tensor& tensor) const {
    if (tensor.unsafeGetTensorImpl() != address_) return false;
    if (!is_converted_) return true;
    const auto watched = watched_.lock();
    return watched && watched->is_unwritten(tensor);
  }
  bool is_lost() const { return tensor_.expired(); }

 private:
  WeakTensor tensor_;
  const c10::TensorImpl* address_;
  bool is_converted_;
  std::weak_ptr<WatchedWeight> watched_;
};

}  // namespace xpurt
