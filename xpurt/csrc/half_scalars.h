// Scalars beside halves, as PyTorch's CPU kernels take them.
#pragma once

#include <c10/core/Scalar.h>

#include "row_spec.h"

namespace xpurt {

// PyTorch's arithmetic takes a scalar as it is, since it computes in float; its
// comparisons and remainders round it to the type of the halves first.
inline c10::Scalar scalar_beside_halves(const RowSpec& spec, const c10::Scalar& scalar,
                                        c10::ScalarType type) {
  const bool rounds = spec.result == ResultRule::boolean || spec.name == "remainder" ||
                      spec.name == "fmod";
  if (!rounds || scalar.isComplex()) return scalar;
  if (type == c10::ScalarType::Half) {
    return static_cast<float>(c10::Half(scalar.toFloat()));
  }
  if (type == c10::ScalarType::BFloat16) {
    return static_cast<float>(c10::BFloat16(scalar.toFloat()));
  }
  return scalar;
}

}  // namespace xpurt
