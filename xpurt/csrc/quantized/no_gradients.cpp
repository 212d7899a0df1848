// Note [Gradients of quantized ops]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Quantized layers are for inference and have no gradient. A call of one is below
// autograd, whatever requires a gradient: a model whose embedding has parameters is
// called outside torch.no_grad(), too. The backward pass raises. There an op raises,
// not the node: a compiler traces the backward pass of such a call as well, and that
// pass may never run.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include <string>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor refuse(const Tensor& /*grad*/, c10::SymIntArrayRef /*sizes*/,
              c10::string_view op) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "a gradient was asked for through ", op,
      ", which is for inference and has none. Call the quantized model under "
      "torch.no_grad(); to train, call the model that was not quantized");
}

Tensor refused(const Tensor& grad, c10::SymIntArrayRef sizes, c10::string_view /*op*/) {
  return grad.new_empty_symint(sizes);
}

// The call of an op with the arguments of the dispatcher.
struct Call {
  const c10::OperatorHandle& op;
  c10::DispatchKeySet keys;
  torch::jit::Stack* stack;

  Tensor below_autograd() const {
    const at::AutoDispatchBelowAutograd guard;
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    return torch::jit::pop(*stack).toTensor();
  }
};

struct WithoutGradient : torch::autograd::Function<WithoutGradient> {
  static Tensor forward(AutogradContext* context, Call call, at::TensorList given) {
    c10::impl::GenericList sizes(c10::AnyType::get());
    for (const Tensor& each : given) sizes.push_back(IValue(each.sym_sizes()));
    context->saved_data["sizes"] = sizes;
    context->saved_data["op"] = call.op.schema().name();
    return call.below_autograd();
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    static const auto op =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("xpurt::no_quantized_gradient", "")
            .typed<Tensor(const Tensor&, c10::SymIntArrayRef, c10::string_view)>();
    const auto sizes = context->saved_data["sizes"].toList();
    const std::string name = context->saved_data["op"].toStringRef();
    variable_list found{Tensor()};  // no gradient for the argument `call`
    for (size_t i = 0; i < sizes.size(); ++i) {
      const bool needed = grads[0].defined() && context->needs_input_grad(i);
      found.push_back(needed ? op.call(grads[0], sizes.get(i).toSymIntVector(), name)
                             : Tensor());
    }
    return found;
  }
};

void call_below_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  variable_list tensors;
  for (const IValue& each : torch::jit::last(*stack, op.schema().arguments().size())) {
    if (each.isTensor() && each.toTensor().defined())
      tensors.push_back(each.toTensor());
  }
  const at::TensorList given = tensors;
  const Call call{op, keys, stack};
  stack->push_back(torch::autograd::compute_requires_grad(given)
                       ? WithoutGradient::apply(call, given)
                       : call.below_autograd());
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def("no_quantized_gradient(Tensor grad, SymInt[] sizes, str op) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CompositeExplicitAutograd, m) {
  m.impl("no_quantized_gradient", TORCH_FN(refuse));
}
TORCH_LIBRARY_IMPL(xpurt, Meta, m) {
  m.impl("no_quantized_gradient", TORCH_FN(refused));
}
TORCH_LIBRARY_IMPL(xpurt, Autograd, m) {
  for (const char* op : {"int8_linear", "int8_convolution", "int8_weight_linear",
                         "int4_weight_linear", "block_linear"}) {
    m.impl(op, torch::CppFunction::makeFromBoxedFunction<&call_below_autograd>());
  }
}

}  // namespace
}  // namespace xpurt
