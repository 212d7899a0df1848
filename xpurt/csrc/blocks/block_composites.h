// Weights in blocks in ordinary ops, for memory that the host does not read.
#pragma once

#include <ATen/core/Tensor.h>

#include "blocks/block_weight.h"

namespace xpurt {

// The values of blocks (rows, bytes of a row), (rows, columns) in float32.
at::Tensor values_of_blocks_composite(const at::Tensor& blocks, BlockFormat format);

}  // namespace xpurt
