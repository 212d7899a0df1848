// The operands of a block's ops: which of them it computes with, in which type and
// layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// That of torch.autocast on devices of the type; nothing if it is not enabled.
std::optional<at::ScalarType> autocast_type(c10::DeviceType device);

// The type in which the block computes an op with such an input and weight, that of
// torch.autocast if it is enabled for the device. Nothing if the op is left alone.
std::optional<at::ScalarType> type_in_block(const at::Tensor& input,
                                            const at::Tensor& weight);

// The tensor, of four or five dimensions, in the type and in channels last.
at::Tensor in_layout(const at::Tensor& tensor, at::ScalarType type);

// In the same way, as a function of the tensor, with a plain gradient if it is plain.
at::Tensor in_layout_for_autograd(const at::Tensor& tensor, at::ScalarType type);

// The input, of four or five dimensions, in the same way. A plain one has a plain
// gradient.
at::Tensor images_in_layout(const at::Tensor& input, at::ScalarType type);

// In channels last by the program's own choice.
bool has_given_layout(const at::Tensor& tensor);

// Notes the result of a convolution in channels last where PyTorch's would be plain.
void note_images(const at::Tensor& result, const at::Tensor& input,
                 const at::Tensor& weight);

// How far the last element is from the first one.
int64_t reach(const at::Tensor& tensor);

// Whether no two elements share memory, as those of an expanded tensor do.
bool fills_memory(const at::Tensor& tensor);

}  // namespace xpurt
