// Custom kernels: rows with OpenCL C written out, in one or more steps. Each step is
// launched over the elements of a tensor.
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <deque>

#include "onednn/rows.h"
#include "op/element_type.h"
#include "op/meta_call.h"
#include "op/op_record.h"
#include "op/operands.h"
#include "op/plain_indices.h"
#include "op/row_call.h"
#include "program/program.h"
#include "rows/custom_kernel_results.h"
#include "rows/launch.h"
#include "rows/run_split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

constexpr int64_t kMaxDims = 8;

struct CustomKernelRoles {
  CustomKernelOverload overload;
  PrimitiveMaker primitive;
  bool has_cpu_kernel;
};

class CustomKernelRun final : public RowCall {
 public:
  CustomKernelRun(const CustomKernelSpec& spec, const CustomKernelRoles& roles)
      : spec_(spec),
        overload_(roles.overload),
        primitive_(roles.primitive),
        has_cpu_kernel_(roles.has_cpu_kernel) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) override;

 private:
  const c10::IValue& argument(const Stack& stack, size_t at) const {
    return overload_.argument(stack, at);
  }
  void read_tensors(const Stack& stack);
  bool can_read() const;
  bool has_parameters() const;
  bool has_counts(const Stack& stack) const;
  bool can_write(const Tensor& target, bool is_out) const;
  bool is_apart(const Tensor& target, const std::string& name) const;
  bool has_result_types(const Stack& stack) const;
  void add_cost(const CustomKernelCall& call, OpCost* cost) const;
  int64_t work_items(const Step& step, const Stack& stack,
                     const CustomKernelCall& call) const;
  // A step that is ready to be submitted.
  struct Ready {
    Ready(Stream& stream, size_t position) : launch(stream, position) {}
    Launch launch;
    CustomKernelArguments arguments;
    const sycl::kernel* kernel = nullptr;
    Range range;
  };
  void prepare(const Step& step, const Stack& stack, const CustomKernelCall& call,
               size_t position, std::deque<Ready>* steps) const;
  std::deque<Ready> prepared(StepPart part, const Stack& stack,
                             const CustomKernelCall& call, size_t position) const;
  void run_steps(const Stack& stack, const CustomKernelCall& call, size_t position);
  ShardList shards(const CustomKernelCall& call, const OpCost& cost, Stream& stream,
                   RowRun& run) const;

  const CustomKernelSpec& spec_;
  const CustomKernelOverload& overload_;
  const PrimitiveMaker primitive_;
  const bool has_cpu_kernel_;
  CustomKernelCall call_;
  bool is_read_ = false;  // call_ has the tensors of the arguments
};

void CustomKernelRun::read_tensors(const Stack& stack) {
  CustomKernelCall& call = call_;
  call = {};
  const c10::IValue* out = nullptr;
  const auto add = [&](std::string name, const c10::IValue& value) {
    call.tensors.push_back(
        {std::move(name), value.isTensor() ? value.toTensor() : Tensor()});
    const Tensor& tensor = call.tensors.back().tensor;
    if (!tensor.defined() || call.type != ScalarType::Undefined) return;
    call.device = tensor.device();
    call.type = tensor.scalar_type();
  };
  for (size_t at = 0; at < overload_.arguments.size(); ++at) {
    const c10::Argument& each = *overload_.arguments[at];
    const c10::IValue& value = argument(stack, at);
    if (each.is_out()) {
      out = &value;
    } else if (is_tensor(each)) {
      add(each.name(), value);
    } else if (is_tensor_list(each) && !value.isNone()) {
      int number = 0;
      for (const c10::IValue& element : value.toListRef()) {
        add(each.name() + std::to_string(number++), element);
      }
    }
  }
  // An op that makes a tensor from numbers has no tensor but its result.
  if (call.type == ScalarType::Undefined && out != nullptr && out->isTensor()) {
    call.device = out->toTensor().device();
    call.type = out->toTensor().scalar_type();
  }
}

// Whether a kernel can read the tensor's memory directly.
bool is_plain(const Tensor& t, c10::Device device) {
  return t.device() == device && t.layout() == c10::kStrided && !t.is_neg() &&
         !t.is_conj() && letter_of(t.scalar_type()) != 0;
}

// PyTorch's kernel converts to another type, or raises the error.
bool CustomKernelRun::has_result_types(const Stack& stack) const {
  const size_t outs = overload_.outs;
  const int of = overload_.copied >= 0 ? overload_.copied : overload_.like;
  if (of < 0) {  // arange.out has no functional form, and takes any type
    return outs == 0 || !overload_.functional.has_value() ||
           have_types_of_results(*overload_.functional, stack, outs);
  }
  const ScalarType type = argument(stack, of).toTensor().scalar_type();
  return std::all_of(
      stack.end() - static_cast<ptrdiff_t>(outs), stack.end(),
      [type](const c10::IValue& out) { return out.toTensor().scalar_type() == type; });
}

bool CustomKernelRun::has_parameters() const {
  const Tensor& first = call_.tensors[0].tensor;
  auto type = ScalarType::Undefined;
  return std::ranges::all_of(spec_.parameters, [&](const std::string& name) {
    const Tensor* parameter = call_.find(name);
    if (parameter == nullptr) return true;
    if (spec_.per_channel && has_wrong_length(*parameter, first)) return false;
    const bool is_first = type == ScalarType::Undefined;
    if (is_first) type = parameter->scalar_type();
    return type == parameter->scalar_type() &&
           (type == call_.type || type == computed_in(call_.type));
  });
}

// Whether the counts are sizes of the input, and the last one the product of the
// others.
bool CustomKernelRun::has_counts(const Stack& stack) const {
  const std::vector<int>& counts = overload_.counts;
  if (counts.empty()) return true;
  const auto sizes = call_.named("input").sizes();
  const size_t last = counts.size() - 1;
  if (sizes.size() < last) return false;
  for (size_t i = 0; i < last; ++i) {
    if (argument(stack, counts[i]).toInt() != sizes[i]) return false;
  }
  return argument(stack, counts[last]).toInt() ==
         c10::multiply_integers(sizes.slice(last));
}

bool CustomKernelRun::can_read() const {
  if (!spec_.has_type(call_.type) || !has_parameters()) return false;
  // Complex tensors are not mixed with real ones, except indices and masks.
  const bool complex = c10::isComplexType(call_.type);
  return std::ranges::all_of(call_.tensors, [&](const NamedTensor& each) {
    const Tensor& t = each.tensor;
    if (!t.defined()) return true;
    if (names(spec_.alike, each.name) && t.scalar_type() != call_.type) return false;
    if (has_cpu_kernel_ && !spec_.takes(each.name, t.scalar_type())) return false;
    return is_plain(t, call_.device) && t.dim() <= kMaxDims &&
           !(complex ? t.is_floating_point() : t.is_complex());
  });
}

bool CustomKernelRun::can_write(const Tensor& target, bool is_out) const {
  // Beside complex numbers an op of xpurt's own may write integers: pivots, counts.
  const bool counts =
      !is_out && c10::isIntegralType(target.scalar_type(), /*includeBool=*/false);
  const bool mixes = !counts && target.is_complex() != c10::isComplexType(call_.type);
  if (!is_plain(target, call_.device) || mixes ||
      !takes_type(spec_.same_type, target.scalar_type(), call_.type, is_out) ||
      at::has_internal_overlap(target) == at::MemOverlap::Yes) {
    return false;
  }
  return true;
}

// Steps read and write in any order, so no other operand may alias the target. In
// place, the target itself is an operand. PyTorch's kernel computes such calls, or
// raises an error. Callers of xpurt's own ops may pass a tensor twice if only one of
// the arguments is used.
bool CustomKernelRun::is_apart(const Tensor& target, const std::string& name) const {
  return std::ranges::none_of(call_.tensors, [&](const NamedTensor& each) {
    if (!each.tensor.defined() || each.name == name) return false;
    const bool is_twice = !has_cpu_kernel_ && each.tensor.is_same(target);
    return !is_twice && each.tensor.is_alias_of(target);
  });
}

bool CustomKernelRun::read(const Stack& stack) {
  read_tensors(stack);
  is_read_ = true;
  if (is_left_to_host(has_cpu_kernel_, overload_.schema, stack, call_.device) ||
      !can_read() || !has_counts(stack)) {
    return false;
  }
  bool needs_fp64 = is_double(call_.type);  // a result may be wider than the operands
  for (size_t at = 0; at < overload_.arguments.size(); ++at) {
    const c10::IValue& value = argument(stack, at);
    if (value.isComplexDouble()) return false;
    const c10::Argument& each = *overload_.arguments[at];
    if (is_written(each) && !can_write(value.toTensor(), each.is_out())) return false;
    if (is_written(each) && !is_apart(value.toTensor(), each.name())) return false;
    if (is_beyond_int(each, value)) return false;
    if (kind_of(each) == c10::TypeKind::NumberType && !value.isNone() &&
        !converts(value.toScalar(), call_.type)) {
      return false;
    }
    if (is_written(each)) needs_fp64 |= is_double(value.toTensor().scalar_type());
    if (each.name() == "dtype" && value.isInt()) {
      needs_fp64 |= is_double(value.toScalarType());
    }
  }
  if (!has_result_types(stack)) return false;
  add_cost(call_, &cost_);
  cost_.needs_fp64 |= needs_fp64;
  return can_run(xpurt::ordinal(call_.device.index()), cost_);
}

void CustomKernelRun::add_cost(const CustomKernelCall& call, OpCost* cost) const {
  cost->flops = spec_.flops;
  for (const NamedTensor& each : call.tensors) {
    if (!each.tensor.defined()) continue;
    cost->read(each.tensor);
    cost->elements = std::max(cost->elements, each.tensor.numel());
    if (names(spec_.rows, each.name)) cost->rows = rows_in(each.tensor);
  }
}

int64_t CustomKernelRun::work_items(const Step& step, const Stack& stack,
                                    const CustomKernelCall& call) const {
  const Tensor& over = call.named(step.over);
  if (!over.defined()) return 0;
  int64_t count = over.numel();
  for (const std::string& along : step.along) {
    if (over.dim() == 0) break;
    const auto named = overload_.schema.argumentIndexWithName(along);
    if (named.has_value() && argument(stack, *named).isNone()) return 1;
    const int64_t dim =
        named.has_value() ? argument(stack, *named).toInt() : std::stoll(along);
    const int64_t size = over.size(dim);  // throws IndexError
    if (count != 0) count /= size;
  }
  const int64_t share = step.share[call.type == ScalarType::Double ? 1 : 0];
  return (count + share - 1) / share;
}

void CustomKernelRun::prepare(const Step& step, const Stack& stack,
                              const CustomKernelCall& call, size_t position,
                              std::deque<Ready>* steps) const {
  const int64_t count = work_items(step, stack, call);
  if (count == 0) return;
  Stream& stream = current_stream(call.device.index());
  Ready& made = steps->emplace_back(stream, position);
  Launch& launch = made.launch;
  CustomKernelArguments& arguments = made.arguments;
  const char computed = letter_of(computed_in(call.type));
  for (const NamedTensor& each : call.tensors) {
    arguments.add(each, spec_.draws);
    const bool reads = names(step.reads, each.name);
    const bool writes = names(step.writes, each.name);
    if (!each.tensor.defined() || !(reads || writes)) continue;
    const bool keeps =
        reads || overload_.copied >= 0 || overload_.is_changed(each.name);
    launch.tensor(each.tensor, !writes ? Access::read
                               : keeps ? Access::read_write
                                       : Access::write);
  }
  if (step.faults) launch.pointer(stream.fault_word(position));
  for (size_t at = 0; at < overload_.arguments.size(); ++at) {
    const c10::Argument& each = *overload_.arguments[at];
    if (is_tensor(each) || is_tensor_list(each) || is_of_no_kernel(each)) continue;
    arguments.add(each.name(), argument(stack, at), is_double(call.type));
  }
  arguments.words()[0] = count;
  arguments.words()[1] = spec_.index + 1;
  launch.structure(arguments.words().data(), arguments.words().size() * 8);
  // "row;custom_kernel;number of the step;type of the computation;arguments"
  std::string key = std::to_string(spec_.index) + ";custom_kernel;";
  key += std::to_string(&step - spec_.steps.data()) + ';';
  key += computed;
  key += ';' + arguments.key();
  const size_t lanes = step.lanes ? std::max(traits(launch.device()).sub_group, 1) : 1;
  made.kernel = &kernel_for(launch.device(), key);
  made.range = cover(launch.device(), {static_cast<size_t>(count) * lanes, 1, 1},
                     step.lanes ? 64 : 256);
}

std::deque<CustomKernelRun::Ready> CustomKernelRun::prepared(
    StepPart part, const Stack& stack, const CustomKernelCall& call,
    size_t position) const {
  std::deque<Ready> steps;
  for (const Step& step : spec_.steps) {
    if (step.part == part) prepare(step, stack, call, position, &steps);
  }
  return steps;
}

// All steps are built before the first one runs: if the driver refuses a build, the
// arguments are unchanged.
void CustomKernelRun::run_steps(const Stack& stack, const CustomKernelCall& call,
                                size_t position) {
  const auto submit = [](std::deque<Ready> steps) {
    for (Ready& each : steps) each.launch.submit(*each.kernel, each.range);
  };
  ReadyPrimitive primitive;
  if (primitive_ != nullptr) {
    primitive =
        ready_primitive(primitive_, {overload_.schema, &argument(stack, 0), call,
                                     position, current_stream(call.device.index())});
  }
  tier_ = primitive ? Tier::onednn : Tier::sycl;
  if (!primitive) return submit(prepared(StepPart::own, stack, call, position));
  auto before = prepared(StepPart::before_primitive, stack, call, position);
  auto after = prepared(StepPart::after_primitive, stack, call, position);
  submit(std::move(before));
  primitive();
  submit(std::move(after));
}

ShardList CustomKernelRun::shards(const CustomKernelCall& call, const OpCost& cost,
                                  Stream& stream, RowRun& run) const {
  std::vector<Tensor> tensors;
  for (const std::string& name : spec_.rows) tensors.push_back(call.named(name));
  return split_rows(cost, tensors, stream, run);
}

void CustomKernelRun::run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) {
  if (overload_.indices >= 0)
    make_indices_plain(overload_.schema, overload_.indices, stack);
  // The list of indices may have changed, and an earlier run that threw has moved call_
  // away.
  if (overload_.indices >= 0 || !is_read_) read_tensors(*stack);
  is_read_ = false;
  CustomKernelCall call = std::move(call_);
  call.arrange(spec_);
  std::vector<Tensor> results = make_results(spec_, overload_, op, *stack, call);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string number = results.size() > 1 ? std::to_string(i) : "";
    call.tensors.push_back({"out" + number, results[i]});
  }
  call.add_scratch(spec_);
  OpCost all;
  add_cost(call, &all);
  Stream& stream = current_stream(call.device.index());
  run_whole_or_split(
      shards(call, all, stream, run), all, stream, run,
      [&](size_t position) { run_steps(*stack, call, position); },
      [&](const Shard& shard) {
        CustomKernelCall of_rows = call;
        for (NamedTensor& each : of_rows.tensors) {
          if (names(spec_.rows, each.name)) each.tensor = rows_of(each.tensor, shard);
        }
        run_steps(*stack, of_rows, shard.position);
      });
  const std::vector<int>& written = overload_.written;
  for (size_t i = 0; i < std::min(written.size(), results.size()); ++i) {
    const Tensor& target = argument(*stack, written[i]).toTensor();
    if (!results[i].is_same(target)) target.copy_(results[i]);
    results[i] = target;
  }
  torch::jit::drop(*stack, overload_.arguments.size());
  for (Tensor& result : results) torch::jit::push(*stack, std::move(result));
}

struct CustomKernelKind final : CustomKernelSpec {
  using CustomKernelSpec::CustomKernelSpec;

  std::unique_ptr<RowKernel> make(const Overload& overload) const override {
    const c10::FunctionSchema& schema = overload.schema();
    const auto writes_others = [](const c10::Argument& each) {
      return is_written(each) && !is_tensor(each);
    };
    if (std::ranges::any_of(schema.arguments(), writes_others) ||
        !std::ranges::all_of(schema.returns(), is_tensor)) {
      return nullptr;
    }
    return make_row<CustomKernelRun>(
        prior_of(*this), static_cast<const CustomKernelSpec&>(*this),
        CustomKernelRoles{CustomKernelOverload(*this, overload),
                          find_primitive(primitive),
                          op_record(overload.op).has_cpu_kernel});
  }
};

[[maybe_unused]] const bool knows_custom_kernel =
    register_kind<CustomKernelKind>("custom_kernel");

}  // namespace
}  // namespace xpurt
