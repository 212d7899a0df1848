#include "rows/decomposed.h"

#include <ATen/native/Resize.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>

#include "host/gil.h"
#include "host/kept_error.h"
#include "op/element_type.h"
#include "op/meta_call.h"
#include "op/op_cost.h"
#include "op/op_record.h"
#include "op/operands.h"
#include "op/row_call.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::OperatorHandle;
using torch::jit::Stack;

// Microseconds to define the function's op and to build the kernels of its ops: a few
// times the build of one kernel.
constexpr double kFormUs = 400e3;

// Leaked: called from any thread, at any time before the process ends.
const FormMaker* make_form = nullptr;

// The rows that this thread is computing. If a function calls its own op, that call is
// computed without the row.
thread_local std::vector<const void*> active;

}  // namespace

c10::ScalarType DecomposedSpec::result_type(c10::ScalarType first) const {
  if (result == "real" && c10::isComplexType(first)) return c10::toRealValueType(first);
  const bool has_complex = c10::isFloatingType(first) && first != at::kBFloat16;
  if (result == "complex" && has_complex) return c10::toComplexType(first);
  return first;
}

Decomposition::Decomposition(const DecomposedSpec& spec, const OperatorHandle& op,
                             OperatorHandle functional)
    : spec_(spec),
      op_(op),
      functional_(std::move(functional)),
      has_meta_(has_strict_meta(op.schema())),
      has_cpu_kernel_(op_record(op).has_cpu_kernel) {
  writes_itself_ = op.operator_name() == functional_.operator_name() &&
                   std::ranges::any_of(op.schema().arguments(), is_written);
  for (const c10::Argument& each : op.schema().arguments()) {
    const int at = arguments_++;
    if (each.name() == "lr") rate_ = at;
    const bool copied = op.operator_name() != functional_.operator_name();
    if (copied && is_written(each)) written_.push_back(at);
    if (each.is_out()) ++outs_;
  }
}

bool Decomposition::accepts(const Stack& stack) const {
  if (std::find(active.begin(), active.end(), this) != active.end()) return false;
  std::optional<c10::Device> device;
  auto type = c10::ScalarType::Undefined;  // of the first tensor
  const auto aliases_written = [&](const Tensor& tensor, int position) {
    return std::ranges::any_of(written_, [&](int at) {
      const Tensor& target = stack[stack.size() - arguments_ + at].toTensor();
      return at != position && target.is_alias_of(tensor);
    });
  };
  size_t left = arguments_;
  bool needs_fp64 = false, asks_meta = false;
  const auto fits = [&](const c10::IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined()) return true;
    const Tensor& tensor = value.toTensor();
    needs_fp64 = needs_fp64 || is_double(tensor.scalar_type());
    if (!tensor.is_xpu() || tensor.layout() != c10::kStrided) return false;
    // Most ops reject a target that is also another operand. PyTorch's kernel raises
    // the error.
    const bool is_out = left <= static_cast<size_t>(outs_);
    if (aliases_written(tensor, arguments_ - static_cast<int>(left))) return false;
    if (!device.has_value()) {
      device = tensor.device();
      type = tensor.scalar_type();
      if (spec_.of_kind && !spec_.has_type(type)) return false;
    }
    // The others are converted to a real type, but not from a complex one.
    if (spec_.of_kind && !is_out && tensor.is_complex() &&
        !spec_.has_type(tensor.scalar_type()))
      return false;
    // PyTorch's kernel raises the error, or converts.
    if (!takes_type(spec_.same_type, tensor.scalar_type(),
                    is_out ? spec_.result_type(type) : type, is_out && !spec_.converts))
      return false;
    if (is_out && !spec_.converts) asks_meta = true;
    return tensor.device() == *device;
  };
  const auto is_number = [&](const c10::IValue& value) {
    return arguments_ - static_cast<int>(left) == rate_ && value.isTensor() &&
           value.toTensor().is_cpu() && value.toTensor().dim() == 0;
  };
  for (auto value = stack.end() - arguments_; value != stack.end(); ++value, --left) {
    if (is_number(*value)) continue;
    const c10::Argument& argument = op_.schema().arguments()[arguments_ - left];
    if (kind_of(argument) == c10::TypeKind::NumberType && !value->isNone() &&
        type != c10::ScalarType::Undefined && !converts(value->toScalar(), type)) {
      return false;
    }
    if (value->isList()) {
      const auto list = value->toListRef();
      if (!std::all_of(list.begin(), list.end(), fits)) return false;
    } else if (!fits(*value)) {
      return false;
    }
  }
  if (!device.has_value()) return false;
  if (is_left_to_host(has_cpu_kernel_, op_.schema(), stack, *device)) return false;
  if (asks_meta && !have_types_of_results(functional_, stack, outs_)) return false;
  const Ordinal& there = ordinal(device->index());
  if (spec_.native_on_cpu && there.working_device().is_cpu &&
      kernel_policy() == KernelPolicy::automatic && !is_capturing(device->index())) {
    return false;
  }
  // Without double, one copy of the operands for PyTorch's kernel is better than one
  // for each op of the function, some of which have no kernel for the CPU.
  return there.working_device().is_opencl && (!needs_fp64 || has_fp64(there));
}

OperatorHandle Decomposition::form() const {
  // The maker takes the GIL, so no thread may wait for the mutex while it holds the
  // GIL.
  const WithoutGil released;
  std::lock_guard<Mutex> lock(mutex_);
  if (!form_.has_value()) {
    const c10::OperatorName name =
        (*make_form)(spec_.index, functional_.operator_name());
    form_ = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(),
                                                           name.overload_name.c_str());
  }
  return *form_;
}

void Decomposition::run(Stack* stack) const {
  if (has_meta_) meta_call(op_, *stack);  // throws the op's own errors
  active.push_back(this);
  const auto done = c10::make_scope_exit([] { active.pop_back(); });
  Stack parts(stack->end() - arguments_, stack->end() - outs_);
  try {
    with_kept_error([&] { form().callBoxed(parts); });
  } catch (const std::exception&) {
    throw_what_the_cpu_throws(op_, *stack);
    throw;
  }
  for (size_t i = 0; i < written_.size(); ++i) {
    const Tensor& target =
        (*stack)[stack->size() - arguments_ + written_[i]].toTensor();
    const Tensor result = parts[i].toTensor();
    const bool can_cast = c10::canCast(result.scalar_type(), target.scalar_type());
    if (!can_cast) throw_what_the_cpu_throws(op_, *stack);
    TORCH_CHECK(can_cast, "result type ", result.scalar_type(),
                " can't be cast to the desired output type ", target.scalar_type());
    const bool resized = outs_ > 0 && at::native::resize_output(target, result.sizes());
    if (resized && spec_.lays_out && result.is_non_overlapping_and_dense()) {
      target.as_strided_(result.sizes(), result.strides());
    }
    target.copy_(result);
    parts[i] = target;
  }
  torch::jit::drop(*stack, arguments_);
  for (c10::IValue& value : parts) torch::jit::push(*stack, std::move(value));
}

void set_form_maker(FormMaker maker) {
  make_form = new FormMaker(std::move(maker));
}

std::unique_ptr<Decomposition> Decomposition::of(const DecomposedSpec& spec,
                                                 const Overload& overload) {
  const OperatorHandle& op = overload.op;
  // The function of a row for an in-place op writes to the arguments.
  if (spec.name.back() == '_') return std::make_unique<Decomposition>(spec, op, op);
  const auto functional = overload.functional();
  if (!functional.has_value()) return nullptr;
  for (const c10::Argument& each : op.schema().arguments()) {
    if (is_written(each) && !is_tensor(each)) return nullptr;
  }
  return std::make_unique<Decomposition>(spec, op, *functional);
}

namespace {

class DecomposedCall final : public RowCall {
 public:
  explicit DecomposedCall(const Decomposition& by) : by_(by) {}
  void run(const OperatorHandle&, Stack* stack, RowRun&) override { by_.run(stack); }

 private:
  const Decomposition& by_;
};

class DecomposedRow final : public RowKernel {
 public:
  DecomposedRow(const RowPrior& prior, std::unique_ptr<Decomposition> by)
      : RowKernel(prior), by_(std::move(by)) {}

  RowCall* parse(const Stack& stack, RowCallStorage& memory) const override {
    return by_->accepts(stack) ? memory.emplace<DecomposedCall>(*by_) : nullptr;
  }
  bool is_repeatable() const override { return !by_->writes_itself(); }

 private:
  const std::unique_ptr<Decomposition> by_;
};

[[maybe_unused]] const bool knows_decomposed =
    register_kind<DecomposedSpec>("decomposed");

}  // namespace

std::unique_ptr<RowKernel> DecomposedSpec::make(const Overload& overload) const {
  auto by = Decomposition::of(*this, overload);
  if (by == nullptr) return nullptr;
  RowPrior prior = prior_of(*this);
  prior.in_parts = true;
  prior.build_us = kFormUs;
  return std::make_unique<DecomposedRow>(prior, std::move(by));
}

}  // namespace xpurt
