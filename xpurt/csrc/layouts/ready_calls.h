// Calls of a block whose weights are converted, for the next ones like them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

#include "layouts/layout_block.h"

namespace xpurt {

// Note [Ready calls]
// ~~~~~~~~~~~~~~~~~~
// A convolution or a linear layer of a block is computed in Python, which keeps
// converted weights. The op that Python has called, with these weights, is kept here as
// long as the weights are. It computes the next call of the same op, in this or a later
// block of the thread, in which all is equal that Python has looked at: the weight and
// the bias, to which nobody has written (see watched_weights.h); sizes, type and device
// of the input; the options; what the block asks for; the types of torch.autocast. No
// call in which a gradient is wanted is kept.

// A call of an op of a block. While it is the current one of the thread, Python may
// keep what it calls for it.
class BlockCall {
 public:
  BlockCall(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
            OpsOfBlock asked);
  BlockCall(const BlockCall&) = delete;
  BlockCall& operator=(const BlockCall&) = delete;
  ~BlockCall();

  // The result of the call that was kept for one like this. Call it without layouts.
  std::optional<at::Tensor> ready_result() const;

  // From now on calls like this one call `op`. The first of the arguments is a place
  // for the input.
  void keep(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments);
  // The op itself, with another weight and bias.
  void keep_itself(const at::Tensor& weight, const c10::IValue& bias);

  // Of this thread; nullptr if there is none, or if none like it may be kept.
  static BlockCall* current();

 private:
  bool may_be_kept() const;

  const c10::OperatorHandle& op_;
  const c10::ArrayRef<c10::IValue> arguments_;
  const OpsOfBlock asked_;
  const bool may_be_kept_;
  BlockCall* const before_;
};

bool wants_gradient(c10::ArrayRef<c10::IValue> operands);

// Forgets those whose weight is gone.
void forget_lost_calls();

}  // namespace xpurt
