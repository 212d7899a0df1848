#include "layouts/operand_wishes.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "layouts/block_operands.h"
#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/new_results.h"
#include "layouts/temporary_layout.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// By the number of the argument; a wish for nothing is for a plain tensor.
using Wishes = std::vector<OperandWish>;

Tensor in_type(const Tensor& operand, const OperandWish& wish) {
  const auto device = operand.device().type();
  const auto type = wish.type_of_block ? autocast_type(device) : wish.type;
  return type ? at::autocast::cached_cast(*type, operand, device) : operand;
}

bool goes_in_channels_last(const Tensor& operand, const OperandWish& wish) {
  return wish.is_channels_last && operand.layout() == at::kStrided &&
         has_channels_last(operand.dim()) &&
         layout_block()->of(operand.device().type()).layout;
}

Tensor as_wished(const Tensor& operand, const OperandWish& wish) {
  if (!goes_in_channels_last(operand, wish)) return in_type(plain(operand), wish);
  return in_type(operand, wish).contiguous(channels_last(operand.dim()));
}

class RunWithWishes final : public c10::OperatorKernel {
 public:
  explicit RunWithWishes(Wishes wishes) : wishes_(std::move(wishes)) {}

  void operator()(const OperatorHandle& op, DispatchKeySet all_keys, Stack* stack) {
    const LayoutKeys& keys = layout_keys();
    if (layout_block() == nullptr || tensors_are_transformed()) {
      return op.redispatchBoxed(after(all_keys, keys.block), stack);
    }
    const size_t start = stack->size() - wishes_.size();
    std::vector<Tensor> given;
    {
      const WithoutLayouts without;
      for (size_t i = 0; i < wishes_.size(); ++i) {
        c10::IValue& value = (*stack)[start + i];
        value = with_tensors(
            std::move(value),
            [&](const Tensor& each) {
              return each.defined() ? given.emplace_back(as_wished(each, wishes_[i]))
                                    : each;
            },
            /*in_place=*/false);
      }
    }
    op.redispatchBoxed(after(all_keys, keys.tensor), stack);
    note_new_results(op, *stack, given);
  }

 private:
  const Wishes wishes_;
};

Wishes by_argument(const c10::FunctionSchema& schema,
                   const std::vector<OperandWish>& wishes) {
  Wishes found(schema.arguments().size());
  for (const OperandWish& wish : wishes) {
    const auto at = schema.argumentIndexWithName(wish.argument);
    TORCH_CHECK_VALUE(at.has_value(), "an operand of ", schema.name(),
                      " was asked for by \"", wish.argument, "\"; found ", schema);
    found[*at] = wish;
  }
  return found;
}

}  // namespace

void register_operand_wishes(const std::string& op,
                             const std::vector<OperandWish>& wishes) {
  const auto key = layout_keys().block;
  const size_t dot = op.find('.');
  const std::string name = op.substr(0, dot);
  const std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  TORCH_CHECK_VALUE(
      handle.has_value(),
      "operands are registered for an op of a library, as \"mylib::conv\" or "
      "\"mylib::conv.out\"; found ",
      op, ", which PyTorch does not know. Define it before");
  TORCH_CHECK_VALUE(!handle->hasKernelForDispatchKey(key), op,
                    " has registered its operands already, or is one of PyTorch's that "
                    "xpurt.autocast knows");
  const std::string library = name.substr(0, name.find("::"));
  auto* kept =
      new torch::Library(torch::Library::IMPL, library, key, __FILE__, __LINE__);
  kept->impl(op.substr(library.size() + 2).c_str(),
             torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RunWithWishes>(
                 by_argument(handle->schema(), wishes))));
}

}  // namespace xpurt
