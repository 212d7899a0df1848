// The ops that compute in another layout, or in int8, within a block.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/register_layouts.h"

namespace xpurt {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

constexpr const char* kOps[] = {
    "conv1d",
    "conv1d.padding",
    "conv2d",
    "conv2d.padding",
    "conv3d",
    "conv3d.padding",
    "linear",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
};

class ComputeInBlock final : public c10::OperatorKernel {
 public:
  explicit ComputeInBlock(LayoutOp compute) : compute_(std::move(compute)) {}

  void operator()(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    const size_t count = op.schema().arguments().size();
    const auto arguments = torch::jit::last(*stack, count);
    const OpsOfBlock& asked =
        layout_block().of(arguments[0].toTensor().device().type());
    if (layout_block().depth > 0 && (asked.layout || asked.int8)) {
      if (std::optional<at::Tensor> result = compute(op, arguments, asked)) {
        torch::jit::drop(*stack, count);
        stack->emplace_back(*std::move(result));
        return;
      }
    }
    op.redispatchBoxed(after(keys, layout_keys().block), stack);
  }

 private:
  std::optional<at::Tensor> compute(const OperatorHandle& op,
                                    c10::ArrayRef<c10::IValue> arguments,
                                    const OpsOfBlock& asked) {
    // int8 is refused in compiled code.
    if (!asked.int8 && tensors_are_transformed()) return std::nullopt;
    const WithoutLayouts without;
    return compute_(op.schema().name().substr(std::string("aten::").size()), arguments);
  }

  const LayoutOp compute_;
};

}  // namespace

void register_block_kernels(LayoutOp compute) {
  const auto key = layout_keys().block;
  auto* any = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  any->fallback(torch::CppFunction::makeFallthrough());
  auto* m = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  for (const char* each : kOps) {
    m->impl(each, torch::CppFunction::makeFromBoxedFunctor(
                      std::make_unique<ComputeInBlock>(compute)));
  }
}

}  // namespace xpurt
