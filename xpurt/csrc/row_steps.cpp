// Rows of steps: kernels written out in OpenCL C, each run once per element of a
// tensor. What the results look like is asked of the op itself, with meta tensors.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>

#include "element_type.h"
#include "meta_call.h"
#include "policy.h"
#include "program.h"
#include "row_spec.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

constexpr int64_t kMostDims = 8;

// A tensor that steps see, by the name that their texts call it by.
struct Seen {
  std::string name;
  Tensor tensor;  // undefined: not given
};

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Note [Arguments of steps]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A kernel takes the pointers of the tensors that are given, in the order of the key,
// then the address of the fault word if the step says FAULT, and one structure. Its
// members are 8 bytes each: the number of places; the number of the row, from 1; then
// per tensor its number of elements, sizes and strides; then the other arguments. The
// key describes them, as "self=f2" (a float tensor of two dimensions), "mask=N" (not
// given), "dim=I" (an integer), "eps=D" (a float), "padding=L2" (two integers),
// "mode='reflect" (a string).
class Arguments {
 public:
  void add(const Seen& seen) {
    name(seen.name);
    if (!seen.tensor.defined()) {
      key_ += 'N';
      return;
    }
    const Tensor& t = seen.tensor;
    key_ += letter_of(t.scalar_type());
    key_ += std::to_string(t.dim());
    words_.push_back(t.numel());
    words_.insert(words_.end(), t.sizes().begin(), t.sizes().end());
    words_.insert(words_.end(), t.strides().begin(), t.strides().end());
  }

  void add(const std::string& called, const c10::IValue& value, bool as_double) {
    name(called);
    if (value.isNone()) {
      key_ += 'N';
    } else if (value.isBool()) {
      integer(value.toBool());
    } else if (value.isInt()) {
      integer(value.toInt());
    } else if (value.isDouble()) {
      real(value.toDouble(), as_double);
    } else if (value.isIntList() || value.isBoolList()) {
      const auto list = value.toListRef();
      key_ += 'L' + std::to_string(list.size());
      for (const c10::IValue& each : list) {
        words_.push_back(each.isBool() ? each.toBool() : each.toInt());
      }
    } else if (value.isString()) {
      key_ += '\'' + value.toStringRef();
    } else {
      TORCH_INTERNAL_ASSERT(false, "steps know no argument like ", called);
    }
  }

  const std::string& key() const { return key_; }
  std::vector<int64_t>& words() { return words_; }

 private:
  void name(const std::string& called) {
    if (!key_.empty()) key_ += ',';
    key_ += called + '=';
  }
  void integer(int64_t value) {
    key_ += 'I';
    words_.push_back(value);
  }
  void real(double value, bool as_double) {
    key_ += 'D';
    int64_t word = 0;
    const auto narrow = static_cast<float>(value);
    if (as_double) {
      std::memcpy(&word, &value, sizeof(value));
    } else {
      std::memcpy(&word, &narrow, sizeof(narrow));
    }
    words_.push_back(word);
  }

  std::string key_;
  std::vector<int64_t> words_{0, 0};
};

class StepsRow final : public RowKernel {
 public:
  StepsRow(const RowSpec& spec, const c10::FunctionSchema& schema)
      : spec_(spec), schema_(schema) {
    for (const c10::Argument& each : schema.arguments()) {
      const int at = static_cast<int>(arguments_.size());
      arguments_.push_back(&each);
      if (is_written(each)) written_.push_back(at);
      if (each.name() == spec.begins_as) copied_ = at;
      if (each.name() == spec.like) like_ = at;
    }
  }

  bool accepts(const Stack& stack) const override;
  bool prefers(const Stack& stack) const override {
    const Call call = read(stack);
    return kernel_wins(current_stream(call.device.index()), cost(call));
  }
  int64_t crossover() const override {
    return xpurt::crossover(OpClass::steps, spec_.flops);
  }
  void run(const c10::OperatorHandle& op, Stack* stack) const override;
  Tier tier() const override { return Tier::sycl; }

 private:
  // The tensors of one call: what is read, in the order of the schema, then what is
  // written.
  struct Call {
    std::vector<Seen> seen;
    c10::Device device{c10::DeviceType::XPU, 0};
    ScalarType type = ScalarType::Undefined;  // of the first tensor
  };

  const c10::IValue& argument(const Stack& stack, size_t at) const {
    return stack[stack.size() - arguments_.size() + at];
  }
  bool in_place() const {
    return !written_.empty() && !arguments_[written_[0]]->is_out();
  }
  Call read(const Stack& stack) const;
  bool can_read(const Call& call) const;
  bool can_write(const Tensor& target, const Call& call) const;
  OpCost cost(const Call& call) const;
  std::vector<Tensor> looks_of_results(const c10::OperatorHandle& op,
                                       const Stack& stack) const;
  std::vector<Tensor> make_results(const c10::OperatorHandle& op, const Stack& stack,
                                   const Call& call) const;
  int64_t places(const Step& step, const Stack& stack, const Call& call) const;
  void launch(const Step& step, const Stack& stack, const Call& call,
              size_t position) const;

  const RowSpec& spec_;
  const c10::FunctionSchema& schema_;
  std::vector<const c10::Argument*> arguments_;
  std::vector<int> written_;  // positions of arguments
  int copied_ = -1;           // the argument that the result is a copy of at first
  int like_ = -1;             // the argument that the result looks like
};

StepsRow::Call StepsRow::read(const Stack& stack) const {
  Call call;
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
    if (each.is_out()) continue;
    if (is_tensor(each)) {
      add(each.name(), value);
    } else if (is_tensor_list(each) && !value.isNone()) {
      int number = 0;
      for (const c10::IValue& element : value.toListRef()) {
        add(each.name() + std::to_string(number++), element);
      }
    }
  }
  return call;
}

bool StepsRow::can_read(const Call& call) const {
  const char first = letter_of(call.type);
  if (first == 0 || spec_.dtypes.find(first) == std::string::npos) return false;
  return std::all_of(call.seen.begin(), call.seen.end(), [&](const Seen& each) {
    const Tensor& t = each.tensor;
    return !t.defined() ||
           (t.is_xpu() && t.device() == call.device && t.layout() == c10::kStrided &&
            !t.is_neg() && t.dim() <= kMostDims && letter_of(t.scalar_type()) != 0);
  });
}

bool StepsRow::can_write(const Tensor& target, const Call& call) const {
  if (!target.is_xpu() || target.device() != call.device || target.is_neg() ||
      target.layout() != c10::kStrided || letter_of(target.scalar_type()) == 0 ||
      at::has_internal_overlap(target) == at::MemOverlap::Yes) {
    return false;
  }
  // Steps read and write in any order.
  return std::none_of(call.seen.begin(), call.seen.end(), [&](const Seen& each) {
    return each.tensor.defined() && !each.tensor.is_same(target) &&
           each.tensor.is_alias_of(target);
  });
}

bool StepsRow::accepts(const Stack& stack) const {
  const Call call = read(stack);
  if (!can_read(call)) return false;
  for (size_t at = 0; at < arguments_.size(); ++at) {
    const c10::IValue& value = argument(stack, at);
    if (value.isComplexDouble()) return false;
    if (is_written(*arguments_[at]) && !can_write(value.toTensor(), call)) return false;
  }
  return can_run(xpurt::ordinal(call.device.index()), cost(call));
}

OpCost StepsRow::cost(const Call& call) const {
  OpCost cost;
  cost.op_class = OpClass::steps;
  cost.flops = spec_.flops;
  for (const Seen& each : call.seen) {
    if (!each.tensor.defined()) continue;
    cost.read(each.tensor);
    cost.elements = std::max(cost.elements, each.tensor.numel());
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

// The tensors that the steps write, one per result; undefined where a call has none.
std::vector<Tensor> StepsRow::make_results(const c10::OperatorHandle& op,
                                           const Stack& stack, const Call& call) const {
  if (schema_.returns().empty()) return {};  // steps write to arguments as they are
  const std::vector<Tensor> like = looks_of_results(op, stack);
  std::vector<Tensor> made;
  for (size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined()) {
      made.emplace_back();
    } else if (written_.empty() || in_place()) {
      made.push_back(at::empty_strided(like[i].sizes(), like[i].strides(),
                                       like[i].options().device(call.device)));
    } else {
      made.push_back(argument(stack, written_[i]).toTensor());
      at::native::resize_output(made.back(), like[i].sizes());
    }
  }
  if (copied_ < 0) return made;
  const Tensor& original = argument(stack, copied_).toTensor();
  if (in_place() && written_[0] == copied_) return {original};
  made[0].copy_(original);
  return made;
}

int64_t StepsRow::places(const Step& step, const Stack& stack, const Call& call) const {
  const auto over =
      std::find_if(call.seen.begin(), call.seen.end(),
                   [&](const Seen& each) { return each.name == step.over; });
  TORCH_INTERNAL_ASSERT(over != call.seen.end(), spec_.name, " has no tensor called ",
                        step.over);
  if (!over->tensor.defined()) return 0;
  int64_t count = over->tensor.numel();
  for (const std::string& along : step.along) {
    if (over->tensor.dim() == 0) break;
    const auto named = schema_.argumentIndexWithName(along);
    const int64_t dim =
        named.has_value() ? argument(stack, *named).toInt() : std::stoll(along);
    const int64_t size = over->tensor.size(dim);  // throws IndexError
    if (count != 0) count /= size;
  }
  return count;
}

void StepsRow::launch(const Step& step, const Stack& stack, const Call& call,
                      size_t position) const {
  const int64_t count = places(step, stack, call);
  if (count == 0) return;
  Stream& stream = current_stream(call.device.index());
  Launch launch(stream, position);
  Arguments arguments;
  const char computed = letter_of(computed_in(call.type));
  for (const Seen& each : call.seen) {
    arguments.add(each);
    const bool reads = names(step.reads, each.name);
    const bool writes = names(step.writes, each.name);
    if (!each.tensor.defined() || !(reads || writes)) continue;
    launch.tensor(each.tensor, !writes                 ? Access::read
                               : reads || copied_ >= 0 ? Access::read_write
                                                       : Access::write);
  }
  if (step.faults) launch.pointer(stream.fault_word(position));
  for (size_t at = 0; at < arguments_.size(); ++at) {
    const c10::Argument& each = *arguments_[at];
    if (is_tensor(each) || is_tensor_list(each) || is_of_no_kernel(each)) continue;
    arguments.add(each.name(), argument(stack, at), computed == 'd');
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
  launch.submit(kernel_for(launch.device(), key),
                cover({static_cast<size_t>(count) * lanes, 1, 1}, 64));
}

void StepsRow::run(const c10::OperatorHandle& op, Stack* stack) const {
  Call call = read(*stack);
  std::vector<Tensor> results = make_results(op, *stack, call);
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string number = results.size() > 1 ? std::to_string(i) : "";
    call.seen.push_back({"out" + number, results[i]});
  }
  for (const Scratch& each : spec_.scratch) {
    const auto like = std::find_if(call.seen.begin(), call.seen.end(),
                                   [&](const Seen& s) { return s.name == each.like; });
    TORCH_INTERNAL_ASSERT(like != call.seen.end(), spec_.name, ": ", each.like);
    const auto type = each.integral ? ScalarType::Long : computed_in(call.type);
    call.seen.push_back({each.name, at::empty(like->tensor.sizes(),
                                              like->tensor.options().dtype(type))});
  }
  OpCost all = cost(call);
  Stream& stream = current_stream(call.device.index());
  const size_t position = choose_device(all, stream);
  for (const Step& step : spec_.steps) launch(step, *stack, call, position);
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
