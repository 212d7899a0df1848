// The function that a primitive applies to the elements of its result.
#pragma once

#include <string>

namespace xpurt {

// `name` is one of: none, relu, leaky_relu (alpha: the slope below 0), clamp (between
// alpha and beta), gelu, gelu_tanh, silu, sigmoid, tanh, hardswish.
struct Activation {
  std::string name = "none";
  double alpha = 0, beta = 0;
};

}  // namespace xpurt
