// Products in the layout that is asked for.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

namespace xpurt {

// t(mm(a, b)) becomes mm(t(b), t(a)), where nothing else reads the product. The
// backward of a linear layer makes the gradient of the weight so. Results of graphs are
// dense, so the first form would be copied. The graph has no tuples.
void reorder_transposed_products(torch::jit::Graph& graph);

}  // namespace xpurt
