// A reference that keeps no tensor alive. No other tensor has its address meanwhile.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

}  // namespace xpurt
