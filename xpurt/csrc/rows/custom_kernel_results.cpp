#include "rows/custom_kernel_results.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "op/meta_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

// Used in `laid_out_like` instead of an argument's name.
constexpr std::string_view kContiguous = "contiguous";

// Tensors with the sizes, strides and types of the results.
std::vector<Tensor> meta_results(const CustomKernelOverload& overload,
                                 const c10::OperatorHandle& op, const Stack& stack) {
  // meta_call() also throws what the op throws for shapes that do not match.
  if (overload.like < 0) return meta_call(op, stack);
  if (overload.has_meta) meta_call(op, stack);
  const Tensor& original = overload.argument(stack, overload.like).toTensor();
  if (original.is_non_overlapping_and_dense()) return {original};
  return {at::empty(original.sizes(), original.options().device(c10::kMeta))};
}

// The meta function's result, with the layout and type that the row declares.
Tensor corrected(const Tensor& meta, const ResultSpec& spec,
                 const CustomKernelOverload& overload, const Stack& stack,
                 const CustomKernelCall& call) {
  Tensor result = meta;
  const auto described = meta.options().device(c10::kMeta);
  if (spec.laid_out_like == kContiguous && !meta.is_contiguous()) {
    result = at::empty(meta.sizes(), described);
  }
  for (const NamedTensor& each : call.tensors) {
    if (each.name != spec.laid_out_like) continue;
    result = each.tensor.sizes() == meta.sizes()
                 ? at::empty_strided(meta.sizes(), each.tensor.strides(), described)
                 : at::empty(meta.sizes(), described,
                             each.tensor.dim() == meta.dim()
                                 ? each.tensor.suggest_memory_format()
                                 : c10::MemoryFormat::Contiguous);
  }
  for (const std::string& name : spec.type_of) {
    const auto at = overload.schema.argumentIndexWithName(name);
    if (!at.has_value() || !overload.argument(stack, *at).isTensor()) continue;
    const Tensor& given = overload.argument(stack, *at).toTensor();
    if (!given.defined()) continue;
    const ScalarType type = given.scalar_type();
    if (type != meta.scalar_type()) result = result.to(type);
    break;
  }
  const auto flag = overload.schema.argumentIndexWithName(spec.empty_without);
  const bool empty = flag.has_value() && !overload.argument(stack, *flag).toBool();
  return empty ? at::empty({0}, result.options()) : result;
}

}  // namespace

std::vector<Tensor> make_results(const CustomKernelSpec& spec,
                                 const CustomKernelOverload& overload,
                                 const c10::OperatorHandle& op, const Stack& stack,
                                 const CustomKernelCall& call) {
  if (overload.schema.returns().empty()) return {};  // the steps write to the arguments
  std::vector<Tensor> like = meta_results(overload, op, stack);
  for (size_t i = 0; i < std::min(like.size(), spec.results.size()); ++i) {
    if (like[i].defined())
      like[i] = corrected(like[i], spec.results[i], overload, stack, call);
  }
  std::vector<Tensor> made;
  for (size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined()) {
      made.emplace_back();
    } else if (overload.written.empty() || overload.in_place()) {
      made.push_back(at::empty_strided(like[i].sizes(), like[i].strides(),
                                       like[i].options().device(call.device)));
    } else {
      const Tensor& target = overload.argument(stack, overload.written[i]).toTensor();
      at::native::resize_output(target, like[i].sizes());
      // Steps that need dense arguments need results of that layout, too.
      const bool any =
          spec.dense.empty() && spec.contiguous.empty() &&
          (i >= spec.results.size() || spec.results[i].laid_out_like.empty());
      const bool fits = any || target.strides() == like[i].strides();
      made.push_back(fits ? target
                          : at::empty_strided(like[i].sizes(), like[i].strides(),
                                              target.options()));
    }
  }
  if (overload.copied < 0) return made;
  const Tensor& original = overload.argument(stack, overload.copied).toTensor();
  if (overload.in_place() && overload.written[0] == overload.copied) return {original};
  made[0].copy_(original);
  return made;
}

}  // namespace xpurt
