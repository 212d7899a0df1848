// The function that a primitive applies to the elements of its result.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace xpurt {

// `name` is one of activation_names(). leaky_relu: `alpha` is the slope below 0. clamp:
// between `alpha` and `beta`.
struct Activation {
  std::string name = "none";
  double alpha = 0, beta = 0;
};

std::vector<std::string> activation_names();

// The function by PyTorch's ops, of `values`, which may be overwritten. Throws
// ValueError for a function that does not exist.
at::Tensor activate(at::Tensor values, const Activation& activation);

}  // namespace xpurt
