// The kernels of autocast with a layout, which are registered at its first use.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>
#include <optional>
#include <string>

namespace xpurt {

// Computes a convolution or a linear layer, in the layout or in int8, from the
// arguments of the op; nothing where PyTorch has to compute it.
using LayoutOp = std::function<std::optional<at::Tensor>(
    const std::string& op, c10::ArrayRef<c10::IValue> arguments)>;

// Once per process.
void register_tensor_kernels();
void register_block_kernels(LayoutOp compute);

}  // namespace xpurt
