// Operands that PyTorch's CPU kernels round first, or reject.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include "op/pointwise_spec.h"

namespace xpurt {

// The scalar operand of an op on tensors of half precision. PyTorch's arithmetic uses
// the scalar unrounded, since it computes in float. Its comparisons and remainders
// first round it to the tensors' type.
inline c10::Scalar scalar_beside_halves(const PointwiseSpec& spec,
                                        const c10::Scalar& scalar,
                                        c10::ScalarType type) {
  const bool rounds = spec.result == ResultRule::boolean || spec.name == "remainder" ||
                      spec.name == "fmod";
  if (!rounds || scalar.isComplex()) return scalar;
  if (type == c10::ScalarType::Half) {
    return static_cast<float>(c10::Half(static_cast<float>(scalar.toDouble())));
  }
  if (type == c10::ScalarType::BFloat16) {
    return static_cast<float>(c10::BFloat16(static_cast<float>(scalar.toDouble())));
  }
  return scalar;
}

// Whether the op subtracts booleans. PyTorch rejects that with an error that names
// another op. The scalar decides only if there is no tensor.
inline bool subtracts_bool(const PointwiseSpec& spec, const at::Tensor* tensor,
                           const c10::Scalar& scalar) {
  if (spec.name != "sub" && spec.name != "rsub") return false;
  return tensor != nullptr ? tensor->scalar_type() == c10::ScalarType::Bool
                           : scalar.isBoolean();
}

}  // namespace xpurt
