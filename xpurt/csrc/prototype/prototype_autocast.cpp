// Autocast for a prototype: PyTorch's lists of ops, for the type's Autocast key, and
// what Note [Autocast of whole layers] adds.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <algorithm>

#include "op/attention_layers.h"
#include "op/stack_tensors.h"
#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DeviceType;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

enum class Cast {
  lower_precision,  // to the dtype of autocast
  to_float,
  float_result,  // float32 as the op's argument `dtype`
  append_dtype,  // the same by another overload, which takes a dtype at the end
  to_widest,
};

// Each is "op" or "op, overload".
#define XPURT_NAME(...) #__VA_ARGS__,
constexpr const char* kLowerPrecision[] = {AT_FORALL_LOWER_PRECISION_FP(XPURT_NAME)};
constexpr const char* kFloat[] = {AT_FORALL_FP32(XPURT_NAME)};
constexpr const char* kFloatResult[] = {AT_FORALL_FP32_SET_OPT_DTYPE(XPURT_NAME)};
constexpr const char* kWidest[] = {AT_FORALL_PROMOTE(XPURT_NAME)};
#undef XPURT_NAME

c10::OperatorName name_of(std::string_view listed) {
  const size_t comma = listed.find(", ");
  const std::string name = "aten::" + std::string(listed.substr(0, comma));
  if (comma == std::string_view::npos) return {name, ""};
  return {name, std::string(listed.substr(comma + 2))};
}

template <typename Visit>
void for_each_argument(const OperatorHandle& op, Stack* stack, const Visit& visit) {
  const size_t count = op.schema().arguments().size();
  for (size_t i = 0; i < count; ++i) {
    visit(op.schema().arguments()[i], (*stack)[stack->size() - count + i]);
  }
}

class RunCast final : public c10::OperatorKernel {
 public:
  RunCast(DeviceType type, Cast cast) : type_(type), cast_(cast) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(
        at::autocast::get_autocast_dispatch_key_from_device_type(type_));
    const auto lower = at::autocast::get_lower_precision_fp_from_device_type(type_);
    switch (cast_) {
      case Cast::lower_precision:
        cast_all(op, stack, lower);
        break;
      case Cast::to_float:
        cast_all(op, stack, at::kFloat);
        break;
      case Cast::to_widest:
        cast_all(op, stack, widest(op, stack, lower));
        break;
      case Cast::float_result:
        set_dtype(op, stack);
        break;
      case Cast::append_dtype:
        return call_with_dtype(op, stack);
    }
    op.callBoxed(stack);
  }

 private:
  void cast_all(const OperatorHandle& op, Stack* stack, at::ScalarType to) {
    for_each_argument(op, stack, [&](const c10::Argument&, IValue& value) {
      value = with_tensors(
          std::move(value),
          [&](const Tensor& each) {
            return at::autocast::cached_cast(to, each, type_);
          },
          /*in_place=*/false);
    });
  }

  at::ScalarType widest(const OperatorHandle& op, Stack* stack, at::ScalarType lower) {
    at::ScalarType found = lower;
    for_each_argument(op, stack, [&](const c10::Argument&, const IValue& value) {
      for_each_tensor(value, [&](const Tensor& each) {
        if (each.defined()) found = at::autocast::prioritize(found, each, type_);
      });
    });
    return found;
  }

  bool is_eligible(const OperatorHandle& op, Stack* stack) {
    bool found = false;
    for_each_argument(op, stack, [&](const c10::Argument&, const IValue& value) {
      for_each_tensor(value, [&](const Tensor& each) {
        found |= at::autocast::is_eligible(each, type_);
      });
    });
    return found;
  }

  void set_dtype(const OperatorHandle& op, Stack* stack) {
    if (!is_eligible(op, stack)) return;
    for_each_argument(op, stack, [&](const c10::Argument& argument, IValue& value) {
      if (argument.name() == "dtype" && value.isNone()) value = at::kFloat;
    });
  }

  void call_with_dtype(const OperatorHandle& op, Stack* stack) {
    if (!is_eligible(op, stack)) return op.callBoxed(stack);
    const bool has_dim = op.schema().overload_name() == "ScalarOpt_dim";
    stack->emplace_back(at::kFloat);
    c10::Dispatcher::singleton()
        .findSchemaOrThrow("aten::norm",
                           has_dim ? "ScalarOpt_dim_dtype" : "ScalarOpt_dtype")
        .callBoxed(stack);
  }

  const DeviceType type_;
  const Cast cast_;
};

}  // namespace

void register_autocast(const PrototypeDevice& device) {
  const c10::DispatchKey key =
      at::autocast::get_autocast_dispatch_key_from_device_type(device.type());
  auto* kept =
      new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  const auto add = [&](const c10::OperatorName& name, Cast cast) {
    kept->impl(toString(name).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(
                   std::make_unique<RunCast>(device.type(), cast)));
  };
  for (const char* each : kAttentionLayers) add({each, ""}, Cast::lower_precision);
  // PyTorch has registered its lists for some types.
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) return;
  auto* any = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  any->fallback(torch::CppFunction::makeFallthrough());
  for (const char* each : kLowerPrecision) add(name_of(each), Cast::lower_precision);
  for (const char* each : kFloat) add(name_of(each), Cast::to_float);
  for (const char* each : kFloatResult) add(name_of(each), Cast::float_result);
  for (const char* each : kWidest) add(name_of(each), Cast::to_widest);
  add({"aten::norm", "Scalar"}, Cast::append_dtype);
  add({"aten::norm", "ScalarOpt_dim"}, Cast::append_dtype);
}

}  // namespace xpurt
