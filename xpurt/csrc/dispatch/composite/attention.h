// scaled_dot_product_attention.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// The tensor, or a copy, whose last dimension has adjacent numbers. PyTorch's fused
// kernel for CPU tensors computes wrong numbers of others: its caller has to look.
at::Tensor in_rows(const at::Tensor& tensor);

// Whether the attention of tensor subclasses, such as DTensor, has to be the fused op,
// of which context parallel makes a ring. Another form is an error then: parts of a
// causal mask would not fit the order of the sequence. It holds for all threads.
void require_fused_attention(bool required);

}  // namespace xpurt
