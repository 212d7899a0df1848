#include "op/meta_call.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <string_view>
#include <unordered_map>

#include "host/recently_used.h"
#include "op/stack_tensors.h"
#include "op/meta/structured_metas.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

Tensor as_meta(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::DeviceType::Meta));
}

Tensor as_zeros(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  return at::zeros(tensor.sizes(), tensor.options().device(c10::DeviceType::CPU));
}

template <typename Change>
IValue changed(const IValue& value, c10::DeviceType device, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isDevice()) return c10::Device(device);
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) list.push_back(change(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const IValue& each : value.toListRef()) {
      list.push_back(each.isNone() ? std::nullopt
                                   : std::make_optional(change(each.toTensor())));
    }
    return list;
  }
  return value;
}

// The arguments at the end of the stack, with `change` applied to their tensors.
template <typename Change>
Stack arguments_as(const c10::FunctionSchema& schema, const Stack& stack,
                   c10::DeviceType device, const Change& change) {
  Stack made;
  const size_t first = stack.size() - schema.arguments().size();
  for (size_t at = first; at < stack.size(); ++at) {
    made.push_back(changed(stack[at], device, change));
    // Empty: code that resizes the given out= tensor warns of it.
    if (schema.arguments()[at - first].is_out() && made.back().isTensor()) {
      made.back() = at::empty({0}, made.back().toTensor().options());
    }
  }
  return made;
}

// All properties of a call that a meta function reads, as bytes.
class CallKey {
 public:
  CallKey(const c10::OperatorHandle& op, const Stack& stack) {
    put(&op.schema());
    put(c10::get_default_dtype_as_scalartype());
    put(at::globalContext().deterministicAlgorithms());
    for (size_t at = stack.size() - op.schema().arguments().size(); at < stack.size();
         ++at) {
      see(stack[at]);
    }
  }

  // False if the bytes do not describe all of the call.
  bool is_whole() const { return is_whole_; }
  std::string take() { return std::move(bytes_); }

 private:
  template <typename T>
  void put(const T& value) {
    static_assert(std::has_unique_object_representations_v<T> ||
                  std::is_floating_point_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  template <typename List>
  void put_all(const List& list) {
    put(list.size());
    for (const auto& each : list) put(each);
  }

  void see(const Tensor& tensor) {
    if (!tensor.defined()) return put('u');
    is_whole_ &= tensor.layout() == c10::kStrided &&
                 !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    if (!is_whole_) return;
    put('t');
    put(tensor.scalar_type());
    put_all(tensor.sizes());
    put_all(tensor.strides());
  }

  void see(const IValue& value) {
    if (value.isTensor()) return see(value.toTensor());
    if (value.isDevice()) return;  // always replaced by the meta device
    if (value.isNone()) return put('n');
    if (value.isInt()) return put('i'), put(value.toInt());
    if (value.isBool()) return put('b'), put(value.toBool());
    if (value.isDouble()) return put('d'), put(value.toDouble());
    put('l');
    if (value.isString()) {
      put(value.toStringRef().size());
      bytes_ += value.toStringRef();
    } else if (value.isIntList()) {
      put_all(value.toIntVector());
    } else if (value.isDoubleList()) {
      put_all(value.toDoubleVector());
    } else if (value.isList()) {
      put(value.toListRef().size());
      for (const IValue& each : value.toListRef()) see(each);
    } else {
      is_whole_ = false;
    }
  }

  std::string bytes_;
  bool is_whole_ = true;
};

using MetaFunctionsByName = std::unordered_map<std::string_view, MetaFunction>;

MetaFunctionsByName& meta_functions() {
  static MetaFunctionsByName* const leaked = new MetaFunctionsByName;
  return *leaked;
}

c10::DispatchKeySet meta_keys() {
  return c10::DispatchKeySet(c10::DispatchKey::Meta);
}

std::vector<Tensor> results_of(const c10::OperatorHandle& op, const Stack& stack) {
  Stack metas = arguments_as(op.schema(), stack, c10::DeviceType::Meta,
                             [](const Tensor& tensor) { return as_meta(tensor); });
  try {
    const auto known = meta_functions().find(op.schema().name());
    if (known != meta_functions().end()) return known->second(metas);
    if (const StructuredMeta* structured = structured_meta(op.schema())) {
      while (!metas.empty() && op.schema().arguments()[metas.size() - 1].is_out()) {
        metas.pop_back();
      }
      structured->function.callBoxed(op, meta_keys(), &metas);
    } else if (op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
      op.callBoxedForDispatchKey(c10::DispatchKey::Meta, metas);
    } else {  // a composite of other ops, or none
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      op.callBoxed(metas);
    }
  } catch (const std::exception&) {
    Stack of_the_cpu = throw_what_the_cpu_throws(op, stack);
    if (of_the_cpu.empty()) throw;
    metas = std::move(of_the_cpu);
  }
  std::vector<Tensor> results;
  for (const IValue& value : metas) {
    const Tensor result = value.isTensor() ? value.toTensor() : Tensor();
    results.push_back(result.defined() ? result.to(c10::kMeta) : result);
  }
  return results;
}

}  // namespace

// Some meta functions throw other messages and types of errors than the CPU kernel, and
// so do functions that rows call. The CPU kernel throws before it computes.
Stack throw_what_the_cpu_throws(const c10::OperatorHandle& op, const Stack& stack) {
  constexpr int64_t kMost = 1 << 20;  // elements
  int64_t elements = 0;
  const auto count = [&](const Tensor& tensor) {
    if (tensor.defined()) elements += tensor.numel();
  };
  const size_t first = stack.size() - op.schema().arguments().size();
  for (size_t at = first; at < stack.size(); ++at) for_each_tensor(stack[at], count);
  const bool runs =
      op.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (elements > kMost || !runs) return {};
  Stack zeros = arguments_as(op.schema(), stack, c10::DeviceType::CPU,
                             [](const Tensor& tensor) { return as_zeros(tensor); });
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &zeros);
  return zeros;
}

bool has_strict_meta(const c10::FunctionSchema& schema) {
  return structured_meta(schema) != nullptr || meta_functions().contains(schema.name());
}

bool register_meta_functions(
    std::initializer_list<std::pair<const char*, MetaFunction>> functions) {
  for (const auto& [op, function] : functions) meta_functions()[op] = function;
  return true;
}

// Many meta functions are written in Python and take a hundred times as long as a
// launch, so their results are cached.
std::vector<Tensor> meta_call(const c10::OperatorHandle& op, const Stack& stack) {
  constexpr size_t kMost = 4096;  // about a KiB each
  static auto* const known =
      new RecentlyUsed<std::vector<Tensor>>(kMost, Rank::meta_results);
  CallKey key(op, stack);
  const auto make = [&] { return results_of(op, stack); };
  return key.is_whole() ? *known->find_unlocked(key.take(), make) : make();
}

bool have_types_of_results(const c10::OperatorHandle& functional, const Stack& stack,
                           size_t outs) {
  const auto end = stack.end() - static_cast<ptrdiff_t>(outs);
  const auto inputs = static_cast<ptrdiff_t>(functional.schema().arguments().size());
  const std::vector<Tensor> results = meta_call(functional, Stack(end - inputs, end));
  for (size_t k = 0; k < outs; ++k) {
    const Tensor& out = (end + static_cast<ptrdiff_t>(k))->toTensor();
    if (results[k].defined() && results[k].scalar_type() != out.scalar_type()) {
      return false;
    }
  }
  return true;
}

}  // namespace xpurt
