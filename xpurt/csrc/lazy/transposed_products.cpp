#include "lazy/transposed_products.h"

namespace xpurt {
namespace {

using torch::jit::Node;
using torch::jit::Value;

const c10::Symbol kTranspose = c10::Symbol::fromQualString("aten::t_copy");
const c10::Symbol kProduct = c10::Symbol::fromQualString("aten::mm");

// The transpose of a matrix, before `at`. None is added if it is there already.
Value* transposed(Value* matrix, Node* at) {
  if (matrix->node()->kind() == kTranspose) return matrix->node()->input();
  Node* node = at->owningGraph()->create(kTranspose, {matrix});
  node->output()->setType(matrix->type());
  return node->insertBefore(at)->output();
}

}  // namespace

void reorder_transposed_products(torch::jit::Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (node->kind() != kTranspose) continue;
    Node* product = node->input()->node();
    if (product->kind() != kProduct || product->output()->uses().size() != 1) continue;
    Value* left = transposed(product->input(1), product);
    Value* right = transposed(product->input(0), product);
    product->replaceInput(0, left);
    product->replaceInput(1, right);
    node->output()->replaceAllUsesWith(product->output());
  }
}

}  // namespace xpurt
