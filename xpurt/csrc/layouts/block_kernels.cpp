// The ops that compute in another layout, or in int8, within a block.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "layouts/block_operands.h"
#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/ready_calls.h"
#include "layouts/register_layouts.h"
#include "layouts/trained_convolutions.h"

namespace xpurt {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// What a block with a layout computes itself: convolutions of images, and linear layers
// whose weight is cast. A block in int8 has all of these ops.
enum class OpOf { images, int8, linear };
struct BlockOp {
  const char* name;
  OpOf of;
};
constexpr BlockOp kOps[] = {
    {"conv1d", OpOf::int8},
    {"conv1d.padding", OpOf::int8},
    {"conv2d", OpOf::images},
    {"conv2d.padding", OpOf::images},
    {"conv3d", OpOf::images},
    {"conv3d.padding", OpOf::images},
    {"linear", OpOf::linear},
    {"conv_transpose2d.input", OpOf::images},
    {"conv_transpose3d.input", OpOf::images},
};

// Whether a linear layer has a weight that torch.autocast casts in each call.
bool has_weight_to_cast(c10::ArrayRef<c10::IValue> arguments) {
  if (wants_gradient(arguments)) return false;
  const at::Tensor& weight = arguments[1].toTensor();
  const auto type = autocast_type(weight.device().type());
  return type && weight.scalar_type() != *type;
}

class ComputeInBlock final : public c10::OperatorKernel {
 public:
  ComputeInBlock(OpOf of, LayoutOp compute) : of_(of), compute_(std::move(compute)) {}

  void operator()(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count);
    const OpsOfBlock asked = asked_of(arguments);
    if (asked.layout || asked.int8) {
      if (std::optional<at::Tensor> result = compute(op, arguments, asked)) {
        torch::jit::drop(*stack, count);
        stack->emplace_back(*std::move(result));
        return;
      }
    }
    op.redispatchBoxed(after(keys, layout_keys().block), stack);
  }

 private:
  // What the block asks of this call. In compiled code int8 is refused.
  OpsOfBlock asked_of(c10::ArrayRef<c10::IValue> arguments) const {
    const LayoutBlock* block = layout_block();
    if (block == nullptr) return {};
    OpsOfBlock asked = block->of(arguments[0].toTensor().device().type());
    if (!asked.layout) return asked;
    asked.layout = of_ != OpOf::int8 && !tensors_are_transformed() &&
                   (of_ == OpOf::images || has_weight_to_cast(arguments));
    return asked;
  }

  std::optional<at::Tensor> compute(const OperatorHandle& op,
                                    c10::ArrayRef<c10::IValue> arguments,
                                    OpsOfBlock asked) {
    const WithoutLayouts without;
    const BlockCall call(op, arguments, asked);
    if (std::optional<at::Tensor> result = call.ready_result()) return result;
    if (of_ == OpOf::images && asked.layout) {
      if (auto result = trained_convolution(op, arguments)) return result;
    }
    return compute_(op.schema().name().substr(std::string("aten::").size()), arguments);
  }

  const OpOf of_;
  const LayoutOp compute_;
};

}  // namespace

void register_block_kernels(LayoutOp compute) {
  const auto key = layout_keys().block;
  auto* any = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  any->fallback(torch::CppFunction::makeFallthrough());
  auto* m = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  for (const auto& [name, of] : kOps) {
    m->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                      std::make_unique<ComputeInBlock>(of, compute)));
  }
}

}  // namespace xpurt
