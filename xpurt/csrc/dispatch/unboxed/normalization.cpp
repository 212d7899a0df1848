// Normalization.
#include "dispatch/unboxed/unboxed_op.h"
#include "op/operands.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/group_norm_native.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>

namespace xpurt {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using ThreeTensors = std::tuple<Tensor, Tensor, Tensor>;

// Note [Group norm on xpu]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch prepares the arguments of its group norm kernels by device type. For CPU
// kernels, the input and the gradient are put in the memory format of the input. For
// xpu, the input loses that format, and the gradient is passed unchanged: permuted, or
// expanded by a sum. PyTorch's CPU kernel reads such a gradient out of bounds. So both
// are prepared here as for the CPU, whichever kernel runs the call. The CPU kernel also
// reads weight and bias as contiguous, without a check.
OptionalTensor contiguous(const OptionalTensor& parameter) {
  const bool given = parameter.has_value() && parameter->defined();
  return given ? OptionalTensor(parameter->contiguous()) : parameter;
}

// PyTorch's CPU kernel for channels_last computes the variance as the mean of squares
// minus the square of the mean: of values 1000 + 1e-10 * noise no digit is right, in
// float64. Its kernel for contiguous inputs adds up differences from the mean. So that
// one runs, and the result gets the format of the input.
struct GroupNormOnHost {
  static ThreeTensors redispatch(c10::DispatchKeySet keys, const Tensor& input,
                                 const OptionalTensor& weight,
                                 const OptionalTensor& bias, c10::SymInt images,
                                 c10::SymInt channels, c10::SymInt area, int64_t groups,
                                 double eps) {
    const auto format = input.suggest_memory_format();
    const bool last = format != c10::MemoryFormat::Contiguous;
    ThreeTensors results = at::_ops::native_group_norm::redispatch(
        keys, last ? input.contiguous() : input, weight, bias, std::move(images),
        std::move(channels), std::move(area), groups, eps);
    if (last) std::get<0>(results) = std::get<0>(results).contiguous(format);
    return results;
  }
};

void group_norm_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                        torch::jit::Stack* stack) {
  c10::IValue& input = torch::jit::peek(*stack, 0, op.schema().arguments().size());
  const auto format = input.toTensor().suggest_memory_format();
  if (format == c10::MemoryFormat::Contiguous) return op.redispatchBoxed(keys, stack);
  input = input.toTensor().contiguous();
  op.redispatchBoxed(keys, stack);
  c10::IValue& result = torch::jit::peek(*stack, 0, 3);
  result = result.toTensor().contiguous(format);
}

const bool group_norm_registered =
    set_host_kernels({{"aten::native_group_norm", "", &group_norm_on_host}});

ThreeTensors native_group_norm(c10::DispatchKeySet keys, const Tensor& input,
                               const OptionalTensor& weight, const OptionalTensor& bias,
                               c10::SymInt images, c10::SymInt channels,
                               c10::SymInt area, int64_t groups, double eps) {
  using Op = at::_ops::native_group_norm;
  return UnboxedOp<Op, void, GroupNormOnHost>::call(
      keys, input, contiguous(weight), contiguous(bias), std::move(images),
      std::move(channels), std::move(area), groups, eps);
}

ThreeTensors group_norm_backward(c10::DispatchKeySet keys, const Tensor& grad,
                                 const Tensor& input, const Tensor& mean,
                                 const Tensor& rstd, const OptionalTensor& weight,
                                 c10::SymInt images, c10::SymInt channels,
                                 c10::SymInt area, int64_t groups,
                                 std::array<bool, 3> wanted) {
  using Op = at::_ops::native_group_norm_backward;
  const auto format = input.suggest_memory_format();
  return UnboxedOp<Op, void, Op>::call(
      keys, grad.contiguous(format), input.contiguous(format), mean.contiguous(),
      rstd.contiguous(), contiguous(weight), std::move(images), std::move(channels),
      std::move(area), groups, wanted);
}

// Whether a parameter per channel has the sizes that PyTorch requires.
bool fits(const OptionalTensor& parameter, const c10::SymInt& channels) {
  if (!parameter.has_value() || !parameter->defined()) return true;
  return parameter->dim() == 1 && parameter->sym_numel() == channels;
}

Tensor group_norm(const Tensor& input, int64_t groups, const OptionalTensor& weight,
                  const OptionalTensor& bias, double eps, bool cudnn_enabled) {
  const auto format = input.suggest_memory_format();
  // For contiguous inputs PyTorch's function is correct; for invalid arguments it
  // raises.
  if (format == c10::MemoryFormat::Contiguous || groups <= 0 ||
      input.sym_size(1) % groups != 0 || !fits(weight, input.sym_size(1)) ||
      !fits(bias, input.sym_size(1))) {
    return at::native::group_norm(input, groups, weight, bias, eps, cudnn_enabled);
  }
  const c10::SymInt images = input.sym_size(0), channels = input.sym_size(1);
  const c10::SymInt area =
      c10::multiply_integers(input.sym_sizes().slice(2, input.dim() - 2));
  return std::get<0>(at::native_group_norm_symint(
      input.contiguous(format), weight, bias, images, channels, area, groups, eps));
}

ThreeTensors native_batch_norm(c10::DispatchKeySet keys, const Tensor& input,
                               const OptionalTensor& weight, const OptionalTensor& bias,
                               const OptionalTensor& running_mean,
                               const OptionalTensor& running_var, bool training,
                               double momentum, double eps) {
  using Op = at::_ops::native_batch_norm;
  const auto check = [&](const OptionalTensor& parameter, const char* name) {
    if (parameter.has_value()) check_length(*parameter, input, name);
  };
  check(weight, "weight");
  check(bias, "bias");
  check(running_mean, "running_mean");
  check(running_var, "running_var");
  return UnboxedOp<Op, void, Op>::call(keys, input, weight, bias, running_mean,
                                       running_var, training, momentum, eps);
}

TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("group_norm", TORCH_FN(group_norm));
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::native_layer_norm>(m);
  unboxed<at::_ops::native_layer_norm_backward>(m);
  m.impl("native_batch_norm", TORCH_FN(native_batch_norm));
  unboxed_ops().emplace_back("aten::native_batch_norm");
  unboxed<at::_ops::native_batch_norm_backward>(m);
  m.impl("native_group_norm", TORCH_FN(native_group_norm));
  unboxed_ops().emplace_back("aten::native_group_norm");
  m.impl("native_group_norm_backward", TORCH_FN(group_norm_backward));
  unboxed_ops().emplace_back("aten::native_group_norm_backward");
  m.impl("group_norm", TORCH_FN(group_norm));
}

}  // namespace
}  // namespace xpurt
