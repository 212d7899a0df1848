#include "lazy/kernels/composite_kernels.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <string>
#include <unordered_map>

namespace xpurt {
namespace {

using at::Tensor;
using c10::OperatorHandle;
using torch::jit::Stack;

// Runs the op's kernel for all devices: xpu has no other one.
void take_apart(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::XPU), stack);
}

const std::unordered_map<std::string, const char*> kWithoutOut{
    {"out", ""},
    {"out_tol_tensor", "tol_tensor"},
    {"atol_rtol_tensor_out", "atol_rtol_tensor"},
    {"atol_rtol_float_out", "atol_rtol_float"}};

// An op with one out= tensor, by the same op without.
void write_result(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const std::string& overload = op.schema().overload_name();
  const OperatorHandle functional = c10::Dispatcher::singleton().findSchemaOrThrow(
      op.schema().name().c_str(), kWithoutOut.at(overload));
  const Tensor out = torch::jit::pop(*stack).toTensor();
  functional.callBoxed(stack);
  const Tensor result = torch::jit::pop(*stack).toTensor();
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), op.schema().name(),
              ": Expected result to be safely castable from ", result.scalar_type(),
              " dtype, but got result with dtype ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  out.copy_(result);
  torch::jit::push(*stack, out);
}

}  // namespace

void register_composite_kernels() {
  // The core has nodes for ops that are made of others, so that they have no gradients.
  static auto* const autograd = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::AutogradLazy, __FILE__, __LINE__);
  for (const char* op :
       {"std", "std.dim", "std.out", "svd", "svd.U", "logdet", "empty.out"}) {
    autograd->impl(op, torch::CppFunction::makeFromBoxedFunction<&take_apart>());
  }
  // PyTorch has no functional form in its list for the first one, and does not write to
  // the out= tensor of the others if it is functionalized.
  static auto* const functional =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Functionalize,
                         __FILE__, __LINE__);
  functional->impl("polygamma_",
                   torch::CppFunction::makeFromBoxedFunction<&take_apart>());
  for (const auto& [overload, without] : kWithoutOut) {
    const std::string name = "linalg_matrix_rank." + overload;
    for (torch::Library* const each : {autograd, functional})
      each->impl(name.c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&write_result>());
  }
}

}  // namespace xpurt
