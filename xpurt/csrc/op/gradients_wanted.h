// Ops whose kernels ask whether an operand requires a gradient.
#pragma once

#include <string_view>

namespace xpurt {

// Its kernel computes indices for the backward op only if an operand requires a
// gradient. Without them the backward op reads memory that is not there.
inline bool computes_more_for_gradients(std::string_view op) {
  return op == "aten::_sparse_mm_reduce_impl";
}

}  // namespace xpurt
