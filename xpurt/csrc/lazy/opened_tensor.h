// What TensorImpl protects, and lazy tensors need.
#pragma once

#include <c10/core/TensorImpl.h>

namespace xpurt {

struct OpenedTensor : c10::TensorImpl {
  using TensorImpl::key_set_;
  using TensorImpl::set_custom_sizes_strides;
};

}  // namespace xpurt
