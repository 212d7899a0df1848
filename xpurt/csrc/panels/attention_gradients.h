// The gradients of scaled dot product attention by products of panels.
#pragma once

#include "panels/attention.h"

namespace xpurt {

// Further inputs, and what is written.
struct PanelAttentionGradients {
  StoredRows<const void> grad, out;  // of the results, and these
  TokenRows<const float> sums;       // the logarithms, from the forward pass
  StoredRows<void> query, key, value;
};

// The weights of a block of keys and queries are computed again from their scores (Dao
// and others, FlashAttention, 2022). Runs on PyTorch's threads, a head on each.
void differentiate_by_panels(const Kernels& kernels, const PanelAttention& attention,
                             const PanelAttentionGradients& gradients);

}  // namespace xpurt
