#include "lazy/kernels/functional_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/expand_copy.h>
#include <ATen/ops/permute_copy.h>
#include <ATen/ops/select_copy.h>
#include <ATen/ops/select_scatter.h>
#include <ATen/ops/slice_copy.h>
#include <ATen/ops/slice_scatter.h>
#include <ATen/ops/squeeze_copy.h>
#include <ATen/ops/t_copy.h>
#include <ATen/ops/transpose_copy.h>
#include <ATen/ops/unfold_backward.h>
#include <ATen/ops/unfold_copy.h>
#include <ATen/ops/unsqueeze_copy.h>
#include <ATen/ops/view_copy.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "lazy/kernels/batch_norm.h"
#include "lazy/kernels/functional_values.h"
#include "op/row_spec.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

namespace impl = at::functionalization::impl;

using at::FunctionalTensorWrapper;
using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// The kernel of a call that is not of lazy tensors: the one that was there before.
class Functional : public c10::OperatorKernel {
 public:
  explicit Functional(const OperatorHandle& op)
      : arguments_(op.schema().arguments().size()),
        before_(op.getComputedKernelForDispatchKey(DispatchKey::Functionalize)) {}

 protected:
  // Whether another kernel was called, as `self` is not lazy.
  bool goes_elsewhere(const OperatorHandle& op, c10::DispatchKeySet keys,
                      Stack* stack) const {
    if (is_lazy_wrapper(torch::jit::peek(*stack, 0, arguments_))) return false;
    before_.callBoxed(op, keys, stack);
    return true;
  }
  void leave(Stack* stack, Tensor result) const {
    torch::jit::drop(*stack, arguments_);
    torch::jit::push(*stack, std::move(result));
  }

  const size_t arguments_;
  const c10::SafeKernelFunction before_;
};

// `add_` by `add`.
class InPlace final : public Functional {
 public:
  InPlace(const OperatorHandle& op, OperatorHandle functional)
      : Functional(op), functional_(std::move(functional)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (goes_elsewhere(op, keys, stack)) return;
    const Tensor self = torch::jit::peek(*stack, 0, arguments_).toTensor();
    Stack given;
    given.reserve(arguments_);
    for (const IValue& each : torch::jit::last(*stack, arguments_))
      given.push_back(with_tensors(each, &traced, /*in_place=*/false));
    {
      const at::AutoDispatchSkipFunctionalize below;
      functional_.callBoxed(given);
    }
    const Tensor made = given.back().toTensor();
    check_written(self, made);
    write(self, made);
    leave(stack, self);
  }

 private:
  const OperatorHandle functional_;
};

class Detach final : public Functional {
 public:
  using Functional::Functional;

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (goes_elsewhere(op, keys, stack)) return;
    const Tensor self = torch::jit::peek(*stack, 0, arguments_).toTensor();
    leave(stack, Tensor(wrapper_of(self).shallow_copy_and_detach(
                     c10::VariableVersion(0), /*allow_tensor_metadata_change=*/false)));
  }
};

// PyTorch's kernel makes a smaller tensor a view of what it was, and leaves it its
// sizes.
class Resize final : public Functional {
 public:
  using Functional::Functional;

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (goes_elsewhere(op, keys, stack)) return;
    const Tensor self = torch::jit::peek(*stack, 0, arguments_).toTensor();
    before_.callBoxed(op, keys, stack);
    const Tensor& value = wrapper_of(self).value();
    self.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes(), value.strides());
  }
};

// How a view follows from its base, and what its base is after a write to the view.
struct ViewOf final : at::functionalization::ViewMeta {
  using Forward = std::function<Tensor(const Tensor& base)>;
  using Reverse = std::function<Tensor(const Tensor& base, const Tensor& view)>;

  ViewOf(Forward forward, Reverse reverse, bool permutes)
      : ViewMeta(/*has_symbolic_inputs=*/false),
        permutes(permutes),
        forward_(std::move(forward)),
        reverse_(std::move(reverse)) {}

  Tensor forward(const Tensor& base) override { return forward_(base); }
  Tensor reverse(const Tensor& base, const Tensor& view) override {
    return reverse_(base, view);
  }

  const bool permutes;  // the elements, in memory

 private:
  const Forward forward_;
  const Reverse reverse_;
};

using View = std::shared_ptr<ViewOf>;
using MakeView = View (*)(c10::ArrayRef<IValue> arguments);

View made(ViewOf::Forward forward, ViewOf::Reverse reverse, bool permutes = false) {
  return std::make_shared<ViewOf>(std::move(forward), std::move(reverse), permutes);
}

View t(c10::ArrayRef<IValue>) {
  return made([](const Tensor& base) { return at::t_copy(base); },
              [](const Tensor&, const Tensor& view) { return at::t_copy(view); },
              /*permutes=*/true);
}

View view(c10::ArrayRef<IValue> arguments) {
  return made([sizes = arguments[1].toIntVector()](
                  const Tensor& base) { return at::view_copy(base, sizes); },
              [](const Tensor& base, const Tensor& view) {
                return at::view_copy(view, base.sizes());
              });
}

View transpose(c10::ArrayRef<IValue> arguments) {
  const auto copy = [a = arguments[1].toInt(), b = arguments[2].toInt()](
                        const Tensor& from) { return at::transpose_copy(from, a, b); };
  return made(
      copy, [copy](const Tensor&, const Tensor& view) { return copy(view); },
      /*permutes=*/true);
}

View permute(c10::ArrayRef<IValue> arguments) {
  const std::vector<int64_t> dims = arguments[1].toIntVector();
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> back(dims.size());
  for (int64_t at = 0; at < rank; ++at)
    back.at(at::maybe_wrap_dim(dims[at], rank)) = at;
  return made([dims](const Tensor& base) { return at::permute_copy(base, dims); },
              [back](const Tensor&, const Tensor& view) {
                return at::permute_copy(view, back);
              });
}

View unsqueeze(c10::ArrayRef<IValue> arguments) {
  const int64_t dim = arguments[1].toInt();
  return made(
      [dim](const Tensor& base) { return at::unsqueeze_copy(base, dim); },
      [dim](const Tensor&, const Tensor& view) { return at::squeeze_copy(view, dim); });
}

// Note [Views that overlap]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// An element of the base may be in a view several times, or not at all. A write reached
// one of these, by a view of the view; the others are as before. So the elements of the
// view that changed are added up where they came from, and the others of the base stay.
// `sums`: of a tensor like the view, to the sizes of the base.
ViewOf::Reverse of_changed(
    ViewOf::Forward forward,
    std::function<Tensor(const Tensor&, c10::IntArrayRef)> sums) {
  return [forward = std::move(forward), sums = std::move(sums)](const Tensor& base,
                                                                const Tensor& view) {
    const Tensor before = forward(base);
    // NaN that was there is no change.
    const Tensor changed =
        view.ne(before).logical_and(view.eq(view).logical_or(before.eq(before)));
    const Tensor values = at::where(changed, view, at::zeros_like(view));
    const Tensor counts = sums(changed.to(at::kFloat), base.sizes());
    return at::where(counts.gt(0), sums(values, base.sizes()).to(base.scalar_type()),
                     base);
  };
}

View expand(c10::ArrayRef<IValue> arguments) {
  const auto copy = [sizes = arguments[1].toIntVector(),
                     implicit = arguments[2].toBool()](const Tensor& base) {
    return at::expand_copy(base, sizes, implicit);
  };
  return made(copy, of_changed(copy, [](const Tensor& of, c10::IntArrayRef sizes) {
                return at::sum_to(of, sizes, /*always_return_non_view=*/true);
              }));
}

View unfold(c10::ArrayRef<IValue> arguments) {
  const int64_t dim = arguments[1].toInt(), size = arguments[2].toInt(),
                step = arguments[3].toInt();
  const auto copy = [=](const Tensor& base) {
    return at::unfold_copy(base, dim, size, step);
  };
  return made(copy, of_changed(copy, [=](const Tensor& of, c10::IntArrayRef sizes) {
                return at::unfold_backward(of, sizes, dim, size, step);
              }));
}

View select(c10::ArrayRef<IValue> arguments) {
  const int64_t dim = arguments[1].toInt(), index = arguments[2].toInt();
  return made([=](const Tensor& base) { return at::select_copy(base, dim, index); },
              [=](const Tensor& base, const Tensor& view) {
                return at::select_scatter(base, view, dim, index);
              });
}

View slice(c10::ArrayRef<IValue> arguments) {
  const int64_t dim = arguments[1].toInt(), step = arguments[4].toInt();
  const auto start = arguments[2].toOptional<int64_t>();
  const auto end = arguments[3].toOptional<int64_t>();
  return made(
      [=](const Tensor& base) { return at::slice_copy(base, dim, start, end, step); },
      [=](const Tensor& base, const Tensor& view) {
        return at::slice_scatter(base, view, dim, start, end, step);
      });
}

const std::unordered_map<std::string_view, MakeView> kViews{
    {"aten::t", &t},
    {"aten::view", &view},
    {"aten::transpose.int", &transpose},
    {"aten::permute", &permute},
    {"aten::unsqueeze", &unsqueeze},
    {"aten::expand", &expand},
    {"aten::unfold", &unfold},
    {"aten::select.int", &select},
    {"aten::slice.Tensor", &slice},
};

class MakesView final : public Functional {
 public:
  MakesView(const OperatorHandle& op, MakeView make) : Functional(op), make_(make) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (goes_elsewhere(op, keys, stack)) return;
    const auto given = torch::jit::last(*stack, arguments_);
    const Tensor self = given[0].toTensor();
    const View view = make_(given);
    Tensor value;
    {
      const at::AutoDispatchSkipFunctionalize below;
      value = view->forward(wrapper_of(self).value());
    }
    Tensor result = at::detail::make_tensor<FunctionalTensorWrapper>(
        value, &wrapper_of(self), view);
    result.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes(), value.strides());
    leave(stack, std::move(result));
  }

 private:
  const MakeView make_;
};

// A lazy tensor has no strides: this is right where the view has all elements of its
// base, in their order.
class AsStrided final : public Functional {
 public:
  using Functional::Functional;

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const IValue& given = torch::jit::peek(*stack, 0, arguments_);
    if (is_lazy_wrapper(given)) check(given.toTensor());
    before_.callBoxed(op, keys, stack);
  }

 private:
  static void check(const Tensor& tensor) {
    const auto& views = wrapper_of(tensor).view_metas();
    if (views.empty()) return;
    const bool permutes = std::ranges::any_of(views, [](const auto& each) {
      const auto* view = dynamic_cast<const ViewOf*>(each.get());
      return view != nullptr && view->permutes;
    });
    auto& storage = static_cast<at::functionalization::FunctionalStorageImpl&>(
        *wrapper_of(tensor).unsafe_storage().unsafeGetStorageImpl());
    const bool is_whole = storage.base().numel() == tensor.numel();
    TORCH_CHECK_NOT_IMPLEMENTED(
        !permutes && is_whole,
        "as_strided of a view of a lazy tensor: lazy tensors have no strides, and this "
        "view has not all elements of its base in their order. Copy it first: "
        "x.clone().as_strided(...).");
  }
};

class BatchNorm final : public Functional {
 public:
  using Functional::Functional;

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (is_lazy_wrapper(torch::jit::peek(*stack, 0, arguments_)) &&
        updates_statistics(*stack))
      return normalize_and_update(stack);
    before_.callBoxed(op, keys, stack);
  }
};

// The op that computes what `op` writes. None: `op` is not in place, or draws numbers,
// or changes more than elements.
std::optional<OperatorHandle> functional_of(const OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  if (!name.ends_with('_') || name.ends_with("__") ||
      op.hasTag(at::Tag::inplace_view) || schema.returns().size() != 1)
    return std::nullopt;
  const auto found = c10::Dispatcher::singleton().findSchema(
      {name.substr(0, name.size() - 1), schema.overload_name()});
  const auto& arguments = schema.arguments();
  if (!found.has_value() || found->schema().returns().size() != 1 ||
      arguments.empty() || !is_written(arguments[0]) ||
      std::any_of(arguments.begin() + 1, arguments.end(), is_written) ||
      std::ranges::any_of(arguments,
                          [](const auto& each) { return each.name() == "generator"; }))
    return std::nullopt;
  return Overload{op, {*found}}.functional();
}

}  // namespace

void register_functional_kernels() {
  static auto* const leaked = new torch::Library(
      torch::Library::IMPL, "aten", DispatchKey::Functionalize, __FILE__, __LINE__);
  const auto put = [](const OperatorHandle& op, auto kernel) {
    leaked->impl(toString(op.operator_name()).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
  };
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value()) continue;
    if (toString(name) == "aten::native_batch_norm")
      put(*op, std::make_unique<BatchNorm>(*op));
    if (!op->hasKernelForDispatchKey(DispatchKey::Functionalize)) continue;
    const auto view = kViews.find(toString(name));
    if (view != kViews.end()) {
      put(*op, std::make_unique<MakesView>(*op, view->second));
    } else if (name.name == "aten::detach" || name.name == "aten::alias") {
      put(*op, std::make_unique<Detach>(*op));
    } else if (name.name == "aten::resize_") {
      put(*op, std::make_unique<Resize>(*op));
    } else if (name.name == "aten::as_strided") {
      put(*op, std::make_unique<AsStrided>(*op));
    } else if (const auto functional = functional_of(*op)) {
      put(*op, std::make_unique<InPlace>(*op, *functional));
    }
  }
}

}  // namespace xpurt
