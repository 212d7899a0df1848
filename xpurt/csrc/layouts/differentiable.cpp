#include "layouts/differentiable.h"

#include <torch/csrc/autograd/custom_function.h>

namespace xpurt {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// A tensor that is no input of the function, so that it gets no gradient.
struct Constant {
  at::Tensor tensor;
};

struct Conversion : torch::autograd::Function<Conversion> {
  static Variable forward(AutogradContext* context, const Variable& source,
                          const Constant& made) {
    context->saved_data["is_plain"] = source.is_contiguous();
    return made.tensor.detach();
  }

  // Autograd gives the gradient the type of the source.
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const bool is_plain = context->saved_data["is_plain"].toBool();
    return {is_plain ? grads[0].contiguous() : grads[0], Variable()};
  }
};

}  // namespace

at::Tensor differentiable(const at::Tensor& source, const at::Tensor& made) {
  return Conversion::apply(source, Constant{made});
}

}  // namespace xpurt
