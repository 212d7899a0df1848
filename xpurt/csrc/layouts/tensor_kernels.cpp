// What an op does with a tensor that has a temporary layout.
#include <ATen/Operators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "host/mutex.h"
#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/new_results.h"
#include "layouts/register_layouts.h"
#include "layouts/temporary_layout.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKeySet;
using c10::FunctionSchema;
using c10::OperatorHandle;
using torch::jit::Stack;

// Note [Ops and temporary layouts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Each op of PyTorch computes the same values from a strided tensor, wherever its
// elements are, except those that make views and those that draw random numbers. So an
// op gets the tensor as it is, and its new results in channels last are temporary, too,
// as they would be plain with a plain tensor. An op that PyTorch takes apart passes:
// the parts are looked at. An op of another library gets a plain tensor, since nobody
// knows how it reads the memory.
enum class Kind {
  parts,    // of ops that are looked at
  strided,  // any strides will do
  view,     // the result shares the memory
  order,    // the result depends on the order in memory
  foreign,  // an op of another library
};

bool starts_with_any(std::string_view name, std::initializer_list<const char*> starts) {
  for (const char* each : starts) {
    if (name.starts_with(each)) return true;
  }
  return false;
}

bool makes_view(const OperatorHandle& op) {
  const FunctionSchema& schema = op.schema();
  // They return their argument, or a copy.
  if (starts_with_any(schema.name(), {"aten::to", "aten::contiguous"})) {
    return schema.name() == "aten::contiguous";
  }
  for (const c10::Argument& each : schema.returns()) {
    if (each.alias_info() != nullptr && !each.alias_info()->isWrite()) return true;
  }
  // Their schemas do not say so.
  return starts_with_any(
      schema.name(), {"aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_chunk",
                      "aten::set_", "aten::_lazy_clone"});
}

Kind found_kind(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (!starts_with_any(name, {"aten::", "prim::", "prims::", "quantized::", "mkldnn::",
                              "xpurt::"})) {
    return Kind::foreign;
  }
  if (makes_view(op)) return Kind::view;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    return Kind::parts;
  }
  const bool draws = op.hasTag(at::Tag::nondeterministic_seeded);
  return draws || name.ends_with("_like") ? Kind::order : Kind::strided;
}

Kind kind_of(const OperatorHandle& op) {
  thread_local std::unordered_map<const FunctionSchema*, Kind> known;
  const auto [at, is_new] = known.try_emplace(&op.schema());
  if (is_new) at->second = found_kind(op);
  return at->second;
}

bool asks_nothing() {
  return layout_block() == nullptr || tensors_are_transformed();
}

// The temporary tensors among the arguments, while an op uses them.
class Uses {
 public:
  void add(const Tensor& each) {
    if (!is_temporary(each)) return;
    c10::TensorImpl* tensor = each.unsafeGetTensorImpl();
    if (std::find(tensors_.begin(), tensors_.end(), tensor) != tensors_.end()) return;
    begin_use(*tensor);
    tensors_.push_back(tensor);
  }
  void add(const std::optional<Tensor>& each) {
    if (each.has_value()) add(*each);
  }
  template <typename Other>
  void add(const Other&) {}

  Uses() = default;
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;
  ~Uses() {
    for (c10::TensorImpl* each : tensors_) end_use(*each);
  }

 private:
  c10::SmallVector<c10::TensorImpl*, 4> tensors_;
};

c10::ArrayRef<c10::IValue> arguments_of(const OperatorHandle& op, const Stack& stack) {
  return torch::jit::last(stack, op.schema().arguments().size());
}

bool keeps_layout(const OperatorHandle& op, const Stack& stack) {
  const auto& declared = op.schema().arguments();
  const auto given = arguments_of(op, stack);
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name() != "memory_format") continue;
    return given[i].isNone() || given[i].toMemoryFormat() == at::MemoryFormat::Preserve;
  }
  return true;
}

void run_strided(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const bool notes = keeps_layout(op, *stack);
  c10::SmallVector<Tensor, 4> kept;  // the op takes the arguments from the stack
  Uses uses;
  for (const c10::IValue& value : arguments_of(op, *stack)) {
    for_each_tensor(value, [&](const Tensor& each) {
      if (is_temporary(each)) kept.push_back(each);
      uses.add(each);
    });
  }
  {
    const WithoutLayouts without;
    op.redispatchBoxed(keys, stack);
  }
  if (notes) note_new_results(op, *stack, kept);
}

void make_all_plain(const c10::IValue& value) {
  for_each_tensor(value, [](const Tensor& each) { make_plain(each); });
}

void run_view(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const bool keeps = op.schema().name() == "aten::contiguous" &&
                     stack->back().toMemoryFormat() != at::MemoryFormat::Contiguous;
  if (!keeps) {
    for (const c10::IValue& value : arguments_of(op, *stack)) make_all_plain(value);
  }
  op.redispatchBoxed(keys, stack);
}

// The op gets copies of those that keep their layout, unless it writes to them.
void run_plain(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t start = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = (*stack)[start + i];
    const auto* alias = arguments[i].alias_info();
    if (alias != nullptr && alias->isWrite()) {
      make_all_plain(value);
    } else {
      value = with_tensors(std::move(value), plain, /*in_place=*/false);
    }
  }
  op.redispatchBoxed(keys, stack);
}

// From now on the op passes this key at no cost.
void let_pass(const OperatorHandle& op) {
  static Mutex mutex{Rank::foreign_kernels};
  static auto* kept = new torch::Library(torch::Library::IMPL, "aten",
                                         layout_keys().tensor, __FILE__, __LINE__);
  const c10::OperatorName name = op.operator_name();
  if (!name.name.starts_with("aten::")) return;
  const std::lock_guard<Mutex> held(mutex);
  if (op.hasKernelForDispatchKey(layout_keys().tensor)) return;
  kept->impl(toString(name).c_str(), torch::CppFunction::makeFallthrough());
}

void run_op(const OperatorHandle& op, DispatchKeySet all_keys, Stack* stack) {
  const DispatchKeySet keys = after(all_keys, layout_keys().tensor);
  if (asks_nothing()) return op.redispatchBoxed(keys, stack);
  switch (kind_of(op)) {
    case Kind::parts:
      let_pass(op);
      return op.redispatchBoxed(keys, stack);
    case Kind::strided:
      return run_strided(op, keys, stack);
    case Kind::view:
      return run_view(op, keys, stack);
    case Kind::order:
    case Kind::foreign:
      return run_plain(op, keys, stack);
  }
}

// Frequent ops, without a stack.
template <typename Op, typename Function>
struct Strided;

void note_result(const Tensor& result) {
  note_temporary(result);
}
template <typename... Tensors>
void note_result(const std::tuple<Tensors...>& results) {
  std::apply([](const auto&... each) { (note_result(each), ...); }, results);
}

template <typename Op, typename Result, typename... Arguments>
struct Strided<Op, Result(Arguments...)> {
  static Result run(DispatchKeySet all_keys, Arguments... arguments) {
    const DispatchKeySet keys = after(all_keys, layout_keys().tensor);
    if (asks_nothing()) return Op::redispatch(keys, arguments...);
    Uses uses;
    (uses.add(arguments), ...);
    const auto call = [&]() -> Result {
      const WithoutLayouts without;
      return Op::redispatch(keys, arguments...);
    };
    if constexpr (std::is_reference_v<Result>) {
      return call();
    } else {
      Result result = call();
      note_result(result);
      return result;
    }
  }
};

template <typename Op>
void add_strided(torch::Library& m) {
  const std::string overload = Op::overload_name;
  const std::string name =
      std::string(Op::name) + (overload.empty() ? "" : "." + overload);
  m.impl(name.c_str(), &Strided<Op, typename Op::schema>::run);
}

template <typename... Ops>
void add_each(torch::Library& m) {
  (add_strided<Ops>(m), ...);
}

}  // namespace

void register_tensor_kernels() {
  namespace ops = at::_ops;
  const auto key = layout_keys().tensor;
  auto* any = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  any->fallback(torch::CppFunction::makeFromBoxedFunction<&run_op>());
  auto* m = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  add_each<ops::relu, ops::relu_, ops::silu, ops::silu_, ops::gelu, ops::sigmoid,
           ops::tanh, ops::hardswish, ops::hardswish_, ops::hardsigmoid, ops::hardtanh,
           ops::hardtanh_, ops::leaky_relu, ops::leaky_relu_, ops::elu, ops::mish,
           ops::clamp, ops::add_Tensor, ops::add__Tensor, ops::sub_Tensor,
           ops::mul_Tensor, ops::mul__Tensor, ops::div_Tensor, ops::mean_dim,
           ops::sum_dim_IntList, ops::native_batch_norm, ops::native_group_norm,
           ops::max_pool2d_with_indices, ops::avg_pool2d, ops::_adaptive_avg_pool2d,
           ops::upsample_nearest2d, ops::upsample_bilinear2d, ops::_softmax,
           ops::_log_softmax>(*m);
}

}  // namespace xpurt
