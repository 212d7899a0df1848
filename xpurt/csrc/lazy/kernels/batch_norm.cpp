#include "lazy/kernels/batch_norm.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;

constexpr size_t kArguments = 8, kMean = 3, kVar = 4, kTraining = 5;

}  // namespace

bool updates_statistics(const torch::jit::Stack& stack) {
  const auto given = torch::jit::last(stack, kArguments);
  const auto is_there = [&](size_t at) {
    return given[at].isTensor() && given[at].toTensor().defined();
  };
  return given[kTraining].toBool() && is_there(kMean) && is_there(kVar);
}

void normalize_and_update(torch::jit::Stack* stack) {
  static const c10::OperatorHandle functional =
      c10::Dispatcher::singleton().findSchemaOrThrow(
          "aten::_native_batch_norm_legit_functional", "");
  const auto given = torch::jit::last(*stack, kArguments);
  const Tensor mean = given[kMean].toTensor(), var = given[kVar].toTensor();
  functional.callBoxed(stack);
  const Tensor new_var = torch::jit::pop(*stack).toTensor();
  const Tensor new_mean = torch::jit::pop(*stack).toTensor();
  var.copy_(new_var);
  mean.copy_(new_mean);
}

}  // namespace xpurt
