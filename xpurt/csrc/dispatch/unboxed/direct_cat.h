// The direct form of concatenation: see Note [Direct forms].
#pragma once

#include "dispatch/unboxed/direct_form.h"

namespace xpurt {

struct DirectCat : DirectForm {
  static bool fits(const at::ITensorListRef& tensors, int64_t dim);
  static std::optional<at::Tensor> run(const at::ITensorListRef& tensors, int64_t dim);
};

}  // namespace xpurt
