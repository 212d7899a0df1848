// Convolutions of a block whose weights are trained.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace xpurt {

// Note [Trained convolutions]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A weight that is trained has another version in each step. So its conversion, and
// that of the bias, is kept with its gradient until the outermost block of the thread
// ends, as torch.autocast does, and is guarded as the weights of ready calls. A
// conversion of another weight is kept longer, by Python.

// The result of a convolution in the layout, if its weight is a leaf that wants a
// gradient; nothing for other calls. Call it without layouts.
std::optional<at::Tensor> trained_convolution(const c10::OperatorHandle& op,
                                              c10::ArrayRef<c10::IValue> arguments);

void forget_trained_weights();

}  // namespace xpurt
