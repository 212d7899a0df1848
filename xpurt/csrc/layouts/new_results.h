// The results of an op that may have a temporary layout.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "layouts/temporary_layout.h"
#include "op/stack_tensors.h"

namespace xpurt {

// Notes those on the stack that are new, and not memory of one of the arguments.
inline void note_new_results(const c10::OperatorHandle& op,
                             const torch::jit::Stack& stack,
                             c10::ArrayRef<at::Tensor> arguments) {
  const auto& returns = op.schema().returns();
  const auto results = torch::jit::last(stack, returns.size());
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].alias_info() != nullptr) continue;
    for_each_tensor(results[i], [&](const at::Tensor& result) {
      if (!result.defined() || !result.has_storage()) return;
      const bool is_new = std::ranges::none_of(arguments, [&](const at::Tensor& each) {
        return each.has_storage() && each.storage().is_alias_of(result.storage());
      });
      if (is_new) note_temporary(result);
    });
  }
}

}  // namespace xpurt
