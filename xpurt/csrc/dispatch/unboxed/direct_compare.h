// The direct forms of comparisons with a Python number: see Note [Direct forms].
#pragma once

#include <cmath>
#include <limits>

#include "dispatch/unboxed/direct_form.h"

namespace xpurt {

// Native: the structured kernel that compares two tensors.
template <typename Native>
struct DirectCompare : DirectForm {
  static bool fits(const at::Tensor& self, const c10::Scalar& number) {
    if (!is_direct_operand(self) || number.isComplex() || number.isSymbolic()) {
      return false;
    }
    const c10::ScalarType type = self.scalar_type();
    if (type == c10::ScalarType::Double) return true;
    // PyTorch's kernel checks a number that a float does not hold.
    return type == c10::ScalarType::Float &&
           std::abs(number.toDouble()) <= std::numeric_limits<float>::max();
  }
  static std::optional<at::Tensor> run(const at::Tensor& self,
                                       const c10::Scalar& number) {
    return Structured<Native>(nullptr).run(self,
                                           number_beside(self, number.toDouble()));
  }
};

}  // namespace xpurt
