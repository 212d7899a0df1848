// Rows of steps: kernels written out in OpenCL C, each run once per element of a
// tensor. What the results look like is asked of the op itself, with meta tensors.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <deque>

#include "element_type.h"
#include "launch.h"
#include "meta_call.h"
#include "onednn_rows.h"
#include "plain_indices.h"
#include "policy.h"
#include "program.h"
#include "split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

constexpr int64_t kMostDims = 8;

// In the place of an argument that a result is laid out like.
constexpr std::string_view kContiguous = "contiguous";

class StepsRow final : public RowKernel {
 public:
  StepsRow(const RowSpec& spec, const c10::FunctionSchema& schema)
      : RowKernel(prior_of(spec)),
        spec_(spec),
        schema_(schema),
        primitive_(find_primitive(spec.primitive)) {
    for (const c10::Argument& each : schema.arguments()) {
      const int at = static_cast<int>(arguments_.size());
      arguments_.push_back(&each);
      if (is_written(each)) written_.push_back(at);
      if (each.name() == spec.begins_as) copied_ = at;
      if (is_optional_tensor_list(each)) indices_ = at;
      if (each.name() == spec.like) like_ = at;
    }
    // Arguments that are written and not returned, as running statistics, are left to
    // the steps; the results are new.
    const auto& returns = schema.returns();
    const bool new_results = std::none_of(
        returns.begin(), returns.end(),
        [](const c10::Argument& each) { return each.alias_info() != nullptr; });
    if (new_results && !returns.empty()) written_.clear();
  }

  bool accepts(const Stack& stack) const override;
  OpCost cost(const Stack& stack) const override { return cost(read(stack)); }
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return last_tier_; }

 private:
  using Call = StepsCall;

  const c10::IValue& argument(const Stack& stack, size_t at) const {
    return stack[stack.size() - arguments_.size() + at];
  }
  // Whether it is an argument that the op changes, and no out=: a step may leave
  // elements of it as they are, so the device has to have them.
  bool is_changed(const std::string& name) const {
    return std::ranges::any_of(arguments_, [&](const c10::Argument* each) {
      return is_written(*each) && !each->is_out() && each->name() == name;
    });
  }
  bool in_place() const {
    return !written_.empty() && !arguments_[written_[0]]->is_out();
  }
  Call read(const Stack& stack) const;
  bool can_read(const Call& call) const;
  bool can_write(const Tensor& target, const Call& call, bool is_out) const;
  OpCost cost(const Call& call) const;
  std::vector<Tensor> looks_of_results(const c10::OperatorHandle& op,
                                       const Stack& stack) const;
  Tensor corrected(const Tensor& meta, const ResultSpec& spec, const Stack& stack,
                   const Call& call) const;
  std::vector<Tensor> make_results(const c10::OperatorHandle& op, const Stack& stack,
                                   const Call& call) const;
  int64_t places(const Step& step, const Stack& stack, const Call& call) const;
  // A step that is ready to be submitted.
  struct Ready {
    Ready(Stream& stream, size_t position) : launch(stream, position) {}
    Launch launch;
    StepArguments arguments;
    const sycl::kernel* kernel = nullptr;
    Range range;
  };
  void prepare(const Step& step, const Stack& stack, const Call& call, size_t position,
               std::deque<Ready>* steps) const;
  std::deque<Ready> prepared(StepPart part, const Stack& stack, const Call& call,
                             size_t position) const;
  void run_steps(const Stack& stack, const Call& call, size_t position) const;
  PieceList pieces(const Call& call, const OpCost& cost, Stream& stream,
                   RowRun& run) const;

  // How the last call of this thread was computed.
  inline static thread_local Tier last_tier_ = Tier::sycl;

  const RowSpec& spec_;
  const c10::FunctionSchema& schema_;
  const PrimitiveMaker primitive_;
  std::vector<const c10::Argument*> arguments_;
  std::vector<int> written_;  // positions of arguments
  int copied_ = -1;           // the argument that the result is a copy of at first
  int indices_ = -1;          // the argument that is a list of indices or None
  int like_ = -1;             // the argument that the result looks like
};

StepsRow::Call StepsRow::read(const Stack& stack) const {
  Call call;
  const c10::IValue* out = nullptr;
  const auto add = [&](std::string name, const c10::IValue& value) {
    call.seen.push_back(
        {std::move(name), value.isTensor() ? value.toTensor() : Tensor()});
    const Tensor& tensor = call.seen.back().tensor;
    if (!tensor.defined() || call.type != ScalarType::Undefined) return;
    call.device = tensor.device();
    call.type = tensor.scalar_type();
  };
  for (size_t at = 0; at < arguments_.size(); ++at) {
    const c10::Argument& each = *arguments_[at];
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
  // An op that makes a tensor from numbers has but its result.
  if (call.type == ScalarType::Undefined && out != nullptr && out->isTensor()) {
    call.device = out->toTensor().device();
    call.type = out->toTensor().scalar_type();
  }
  return call;
}

// Whether a kernel takes the tensor as it lies in memory.
bool is_plain(const Tensor& t, c10::Device device) {
  return t.device() == device && t.layout() == c10::kStrided && !t.is_neg() &&
         !t.is_conj() && letter_of(t.scalar_type()) != 0;
}

bool StepsRow::can_read(const Call& call) const {
  const char first = letter_of(call.type);
  if (first == 0 || spec_.dtypes.find(first) == std::string::npos) return false;
  if (spec_.raises_on_empty && call.seen[0].tensor.numel() == 0) return false;
  // Complex numbers and others are not mixed, but for indices and masks.
  const bool complex = c10::isComplexType(call.type);
  return std::ranges::all_of(call.seen, [&](const Seen& each) {
    const Tensor& t = each.tensor;
    return !t.defined() || (is_plain(t, call.device) && t.dim() <= kMostDims &&
                            !(complex ? t.is_floating_point() : t.is_complex()));
  });
}

bool StepsRow::can_write(const Tensor& target, const Call& call, bool is_out) const {
  if (!is_plain(target, call.device) ||
      target.is_complex() != c10::isComplexType(call.type) ||
      !takes_type(spec_, target.scalar_type(), call.type, is_out) ||
      at::has_internal_overlap(target) == at::MemOverlap::Yes) {
    return false;
  }
  // Steps read and write in any order. In place, the target is an operand itself.
  return std::none_of(call.seen.begin(), call.seen.end(), [&](const Seen& each) {
    return each.tensor.defined() && (is_out || !each.tensor.is_same(target)) &&
           each.tensor.is_alias_of(target);
  });
}

bool StepsRow::accepts(const Stack& stack) const {
  const Call call = read(stack);
  if (!can_read(call)) return false;
  for (size_t at = 0; at < arguments_.size(); ++at) {
    const c10::IValue& value = argument(stack, at);
    if (value.isComplexDouble()) return false;
    const c10::Argument& each = *arguments_[at];
    if (is_written(each) && !can_write(value.toTensor(), call, each.is_out())) {
      return false;
    }
  }
  return can_run(xpurt::ordinal(call.device.index()), cost(call));
}

OpCost StepsRow::cost(const Call& call) const {
  OpCost cost;
  cost.flops = spec_.flops;
  for (const Seen& each : call.seen) {
    if (!each.tensor.defined()) continue;
    cost.read(each.tensor);
    cost.elements = std::max(cost.elements, each.tensor.numel());
    if (names(spec_.rows, each.name)) cost.rows = rows_in(each.tensor);
  }
  return cost;
}

// Tensors with the sizes, strides and types of the results.
std::vector<Tensor> StepsRow::looks_of_results(const c10::OperatorHandle& op,
                                               const Stack& stack) const {
  // This also throws what the op throws for shapes that do not fit.
  if (like_ < 0) return meta_call(op, stack);
  const Tensor& original = argument(stack, like_).toTensor();
  if (original.is_non_overlapping_and_dense()) return {original};
  return {at::empty(original.sizes(), original.options().device(c10::kMeta))};
}

// What the meta function gave, as the row has it.
Tensor StepsRow::corrected(const Tensor& meta, const ResultSpec& spec,
                           const Stack& stack, const Call& call) const {
  Tensor result = meta;
  const auto described = meta.options().device(c10::kMeta);
  if (spec.laid_out_like == kContiguous && !meta.is_contiguous()) {
    result = at::empty(meta.sizes(), described);
  }
  for (const Seen& each : call.seen) {
    if (each.name != spec.laid_out_like) continue;
    result = each.tensor.sizes() == meta.sizes()
                 ? at::empty_strided(meta.sizes(), each.tensor.strides(), described)
                 : at::empty(meta.sizes(), described,
                             each.tensor.dim() == meta.dim()
                                 ? each.tensor.suggest_memory_format()
                                 : c10::MemoryFormat::Contiguous);
  }
  for (const std::string& name : spec.type_of) {
    const auto at = schema_.argumentIndexWithName(name);
    if (!at.has_value() || !argument(stack, *at).isTensor()) continue;
    const Tensor& given = argument(stack, *at).toTensor();
    if (!given.defined()) continue;
    const ScalarType type = given.scalar_type();
    if (type != meta.scalar_type()) result = result.to(type);
    break;
  }
  const auto flag = schema_.argumentIndexWithName(spec.empty_without);
  const bool empty = flag.has_value() && !argument(stack, *flag).toBool();
  return empty ? at::empty({0}, result.options()) : result;
}

// The tensors that the steps write, one per result; undefined where a call has none.
std::vector<Tensor> StepsRow::make_results(const c10::OperatorHandle& op,
                                           const Stack& stack, const Call& call) const {
  if (schema_.returns().empty()) return {};  // steps write to arguments as they are
  std::vector<Tensor> like = looks_of_results(op, stack);
  for (size_t i = 0; i < std::min(like.size(), spec_.results.size()); ++i) {
    if (like[i].defined()) like[i] = corrected(like[i], spec_.results[i], stack, call);
  }
  std::vector<Tensor> made;
  for (size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined()) {
      made.emplace_back();
    } else if (written_.empty() || in_place()) {
      made.push_back(at::empty_strided(like[i].sizes(), like[i].strides(),
                                       like[i].options().device(call.device)));
    } else {
      const Tensor& target = argument(stack, written_[i]).toTensor();
      at::native::resize_output(target, like[i].sizes());
      // Steps that want their arguments dense write to results like those.
      const bool any =
          spec_.dense.empty() && spec_.contiguous.empty() &&
          (i >= spec_.results.size() || spec_.results[i].laid_out_like.empty());
      const bool fits = any || target.strides() == like[i].strides();
      made.push_back(fits ? target
                          : at::empty_strided(like[i].sizes(), like[i].strides(),
                                              target.options()));
    }
  }
  if (copied_ < 0) return made;
  const Tensor& original = argument(stack, copied_).toTensor();
  if (in_place() && written_[0] == copied_) return {original};
  made[0].copy_(original);
  return made;
}

int64_t StepsRow::places(const Step& step, const Stack& stack, const Call& call) const {
  const Tensor& over = call.named(step.over);
  if (!over.defined()) return 0;
  int64_t count = over.numel();
  for (const std::string& along : step.along) {
    if (over.dim() == 0) break;
    const auto named = schema_.argumentIndexWithName(along);
    if (named.has_value() && argument(stack, *named).isNone()) return 1;
    const int64_t dim =
        named.has_value() ? argument(stack, *named).toInt() : std::stoll(along);
    const int64_t size = over.size(dim);  // throws IndexError
    if (count != 0) count /= size;
  }
  const int64_t share = step.share[call.type == ScalarType::Double ? 1 : 0];
  return (count + share - 1) / share;
}

void StepsRow::prepare(const Step& step, const Stack& stack, const Call& call,
                       size_t position, std::deque<Ready>* steps) const {
  const int64_t count = places(step, stack, call);
  if (count == 0) return;
  Stream& stream = current_stream(call.device.index());
  Ready& made = steps->emplace_back(stream, position);
  Launch& launch = made.launch;
  StepArguments& arguments = made.arguments;
  const char computed = letter_of(computed_in(call.type));
  for (const Seen& each : call.seen) {
    arguments.add(each, spec_.draws);
    const bool reads = names(step.reads, each.name);
    const bool writes = names(step.writes, each.name);
    if (!each.tensor.defined() || !(reads || writes)) continue;
    const bool keeps = reads || copied_ >= 0 || is_changed(each.name);
    launch.tensor(each.tensor, !writes ? Access::read
                               : keeps ? Access::read_write
                                       : Access::write);
  }
  if (step.faults) launch.pointer(stream.fault_word(position));
  for (size_t at = 0; at < arguments_.size(); ++at) {
    const c10::Argument& each = *arguments_[at];
    if (is_tensor(each) || is_tensor_list(each) || is_of_no_kernel(each)) continue;
    arguments.add(each.name(), argument(stack, at), is_double(call.type));
  }
  arguments.words()[0] = count;
  arguments.words()[1] = spec_.index + 1;
  launch.structure(arguments.words().data(), arguments.words().size() * 8);
  // "row;steps;number of the step;type of the computation;arguments"
  std::string key = std::to_string(spec_.index) + ";steps;";
  key += std::to_string(&step - spec_.steps.data()) + ';';
  key += computed;
  key += ';' + arguments.key();
  const size_t lanes = step.lanes ? std::max(traits(launch.device()).sub_group, 1) : 1;
  made.kernel = &kernel_for(launch.device(), key);
  made.range = cover({static_cast<size_t>(count) * lanes, 1, 1}, step.lanes ? 64 : 256);
}

std::deque<StepsRow::Ready> StepsRow::prepared(StepPart part, const Stack& stack,
                                               const Call& call,
                                               size_t position) const {
  std::deque<Ready> steps;
  for (const Step& step : spec_.steps) {
    if (step.part == part) prepare(step, stack, call, position, &steps);
  }
  return steps;
}

// All are built before one runs: a driver that refuses the last one finds the arguments
// as they were.
void StepsRow::run_steps(const Stack& stack, const Call& call, size_t position) const {
  const auto submit = [](std::deque<Ready> steps) {
    for (Ready& each : steps) each.launch.submit(*each.kernel, each.range);
  };
  ReadyPrimitive primitive;
  if (primitive_ != nullptr) {
    primitive =
        ready_primitive(primitive_, {schema_, &argument(stack, 0), call, position,
                                     current_stream(call.device.index())});
  }
  last_tier_ = primitive ? Tier::onednn : Tier::sycl;
  if (!primitive) return submit(prepared(StepPart::own, stack, call, position));
  auto before = prepared(StepPart::before_primitive, stack, call, position);
  auto after = prepared(StepPart::after_primitive, stack, call, position);
  submit(std::move(before));
  primitive();
  submit(std::move(after));
}

PieceList StepsRow::pieces(const Call& call, const OpCost& cost, Stream& stream,
                           RowRun& run) const {
  std::vector<Tensor> tensors;
  for (const std::string& name : spec_.rows) tensors.push_back(call.named(name));
  return split_rows(cost, tensors, stream, run);
}

void StepsRow::run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) const {
  if (indices_ >= 0) make_indices_plain(schema_, indices_, stack);
  Call call = read(*stack);
  call.arrange(spec_);
  std::vector<Tensor> results = make_results(op, *stack, call);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string number = results.size() > 1 ? std::to_string(i) : "";
    call.seen.push_back({"out" + number, results[i]});
  }
  call.add_scratch(spec_);
  OpCost all = cost(call);
  Stream& stream = current_stream(call.device.index());
  const PieceList parts = pieces(call, all, stream, run);
  if (parts.empty()) run_steps(*stack, call, choose_device(all, stream, run));
  run_pieces(parts, stream.ordinal(), run, [&](const Piece& piece) {
    Call of_rows = call;
    for (Seen& each : of_rows.seen) {
      if (names(spec_.rows, each.name)) each.tensor = rows_of(each.tensor, piece);
    }
    run_steps(*stack, of_rows, piece.position);
  });
  for (size_t i = 0; i < std::min(written_.size(), results.size()); ++i) {
    const Tensor& target = argument(*stack, written_[i]).toTensor();
    if (!results[i].is_same(target)) target.copy_(results[i]);
    results[i] = target;
  }
  torch::jit::drop(*stack, arguments_.size());
  for (Tensor& result : results) torch::jit::push(*stack, std::move(result));
}

}  // namespace

std::unique_ptr<RowKernel> make_steps(const RowSpec& spec,
                                      const c10::FunctionSchema& schema) {
  for (const c10::Argument& each : schema.arguments()) {
    if (is_written(each) && !is_tensor(each)) return nullptr;
  }
  for (const c10::Argument& each : schema.returns()) {
    if (!is_tensor(each)) return nullptr;
  }
  return std::make_unique<StepsRow>(spec, schema);
}

}  // namespace xpurt
