// The direct form of torch.where: see Note [Direct forms].
#pragma once

#include "dispatch/unboxed/direct_form.h"

namespace xpurt {

struct DirectWhere : DirectForm {
  static bool fits(const at::Tensor& condition, const at::Tensor& self,
                   const at::Tensor& other);
  static std::optional<at::Tensor> run(const at::Tensor& condition,
                                       const at::Tensor& self, const at::Tensor& other);
};

}  // namespace xpurt
