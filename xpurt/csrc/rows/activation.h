// Functions of elements by PyTorch's ops, named as in onednn/activation.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "onednn/activation.h"

namespace xpurt {

// The function of `values`, which may be overwritten. Throws ValueError for a function
// that does not exist.
at::Tensor activate(at::Tensor values, const Activation& activation);

}  // namespace xpurt
