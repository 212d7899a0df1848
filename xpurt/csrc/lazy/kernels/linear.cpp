#include "lazy/kernels/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <array>
#include <memory>
#include <vector>

#include "lazy/kernels/functional_again.h"
#include "lazy/traced_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

constexpr size_t kLinearArguments = 3;  // of linear; its gradients have a mask as well

// The gradients of the arguments that have a mask of true.
std::vector<Tensor> gradients(const Tensor& input, const Tensor& gradient,
                              const Tensor& weight, std::array<bool, 3> mask) {
  // Sizes may be symbols, in a compiler.
  const auto sizes = input.sym_sizes();
  c10::SymInt rows = 1;
  for (const c10::SymInt& each : sizes.slice(0, sizes.size() - 1)) rows *= each;
  const Tensor out = gradient.reshape_symint({rows, weight.sym_size(0)});
  std::vector<Tensor> found;
  if (mask[0]) found.push_back(out.mm(weight).reshape_symint(sizes));
  if (mask[1])
    found.push_back(out.t().mm(input.reshape_symint({rows, weight.sym_size(1)})));
  if (mask[2]) found.push_back(out.sum(0));
  return found;
}

// `linear_backward`, whose results are undefined without a mask.
void backward(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  if (called_functionalized(op, stack)) return;
  static const OperatorHandle ours = c10::Dispatcher::singleton().findSchemaOrThrow(
      "xpurt_lazy::linear_gradients", "");
  const auto given = torch::jit::last(*stack, kLinearArguments + 1);
  const Tensor input = given[0].toTensor(), weight = given[2].toTensor();
  const c10::List<bool> mask = given[3].toBoolList();
  const c10::ScalarType type = weight.scalar_type();
  std::vector<torch::lazy::Shape> shapes;
  if (mask[0]) shapes.emplace_back(type, input.sizes());
  if (mask[1]) shapes.emplace_back(type, weight.sizes());
  if (mask[2]) shapes.emplace_back(type, weight.sizes().slice(0, 1));
  std::vector<Tensor> made;
  if (shapes.empty()) {
    torch::jit::drop(*stack, kLinearArguments + 1);
  } else {
    record_call(ours, stack, std::move(shapes));
    made = torch::jit::pop(*stack).toTensorVector();
  }
  size_t next = 0;
  for (size_t at = 0; at < kLinearArguments; ++at)
    torch::jit::push(*stack, mask[at] ? made.at(next++) : Tensor());
}

bool is_lazy(const Tensor& tensor) {
  return tensor.device().is_lazy() && !tensor.is_complex();
}

bool is_plain(const Tensor& input, const Tensor& weight, const IValue& bias) {
  const auto& modes = c10::impl::tls_local_dispatch_key_set().included_;
  if (modes.has(DispatchKey::Python) ||
      modes.has(DispatchKey::FuncTorchDynamicLayerFrontMode))
    return false;
  const bool has_bias = bias.isTensor() && bias.toTensor().defined();
  return is_lazy(input) && is_lazy(weight) && input.dim() > 0 && weight.dim() == 2 &&
         (!has_bias || (is_lazy(bias.toTensor()) && bias.toTensor().dim() == 1 &&
                        bias.toTensor().size(0) == weight.size(0)));
}

// For the key of autograd, which has a kernel beside the one for all devices.
class Linear final : public c10::OperatorKernel {
 public:
  explicit Linear(const OperatorHandle& op)
      : differentiable_(op.getComputedKernelForDispatchKey(DispatchKey::AutogradLazy)) {
  }

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto given = torch::jit::last(*stack, kLinearArguments);
    const Tensor &input = given[0].toTensor(), &weight = given[1].toTensor();
    if (is_plain(input, weight, given[2]))
      return differentiable_.callBoxed(op, keys, stack);
    Tensor made = at::native::linear(input, weight, given[2].toOptional<Tensor>());
    torch::jit::drop(*stack, kLinearArguments);
    torch::jit::push(*stack, std::move(made));
  }

 private:
  const c10::SafeKernelFunction differentiable_;
};

}  // namespace

void register_linear() {
  static auto* const ours = new torch::Library(torch::Library::FRAGMENT, "xpurt_lazy",
                                               std::nullopt, __FILE__, __LINE__);
  ours->def(
      "linear_gradients(Tensor input, Tensor gradient, Tensor weight, bool[3] mask) -> "
      "Tensor[]");
  ours->impl("linear_gradients", torch::dispatch(DispatchKey::CompositeImplicitAutograd,
                                                 TORCH_FN(gradients)));
  static auto* const lazy = new torch::Library(torch::Library::IMPL, "aten",
                                               DispatchKey::Lazy, __FILE__, __LINE__);
  lazy->impl("linear", torch::CppFunction::makeFromBoxedFunction<&traced_call>());
  lazy->impl("linear_backward", torch::CppFunction::makeFromBoxedFunction<&backward>());
  static auto* const autograd = new torch::Library(
      torch::Library::IMPL, "aten", DispatchKey::AutogradLazy, __FILE__, __LINE__);
  const OperatorHandle linear =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::linear", "");
  autograd->impl("linear", torch::CppFunction::makeFromBoxedFunctor(
                               std::make_unique<Linear>(linear)));
}

}  // namespace xpurt
