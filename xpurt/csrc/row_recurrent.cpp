// Layers of LSTM and GRU in one direction, and their gradients: by oneDNN where it
// knows the device and has a primitive, else by cells.
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>

#include "capture.h"
#include "element_type.h"
#include "onednn_recurrent.h"
#include "row_call.h"
#include "row_spec.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Arguments of the ops: those of the layer, of its gradients before that, and of its
// results behind it.
constexpr size_t kOfLayer = 8, kGrads = 3, kOfResults = 5;
constexpr double kLaunchesPerStep = 2;  // of a product and a cell

Tensor tensor_of(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : Tensor();
}

struct RecurrentSpec final : RowSpec {
  using RowSpec::RowSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

struct RecurrentRoles {
  bool lstm = false, backward = false;
};

class RecurrentCall final : public RowCall {
 public:
  RecurrentCall(const RecurrentSpec& spec, const RecurrentRoles& roles)
      : spec_(spec), lstm_(roles.lstm), backward_(roles.backward) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle& op, Stack* stack) override;

 private:
  size_t count() const {
    return backward_ ? kGrads + kOfLayer + kOfResults : kOfLayer + 1;
  }
  const c10::IValue* arguments(const Stack& stack) const {
    return &stack[stack.size() - count()];
  }
  bool trains(const Stack& stack) const { return backward_ || stack.back().toBool(); }
  void read_cost(const Stack& stack);
  RecurrentResults results(const Stack& stack) const;
  void forward(size_t position, Stream& stream, Stack* stack);
  void backward(Stream& stream, size_t position, Stack* stack);

  const RecurrentSpec& spec_;
  const bool lstm_, backward_;
  RecurrentLayer layer_;
};

RecurrentResults RecurrentCall::results(const Stack& stack) const {
  const c10::IValue* at = arguments(stack) + kGrads + kOfLayer;
  return {at[0].toTensor(), at[1].toTensor(), tensor_of(at[2]), at[3].toTensor(),
          at[4].toInt()};
}

bool RecurrentCall::read(const Stack& stack) {
  layer_ = layer_at(arguments(stack) + (backward_ ? kGrads : 0), lstm_);
  const Tensor& first = layer_.input;
  if (!first.is_xpu() || !spec_.has_type(first.scalar_type())) return false;
  const auto fits = [&](const c10::IValue& value) {
    const Tensor tensor = tensor_of(value);
    return !tensor.defined() ||
           (tensor.device() == first.device() && tensor.layout() == c10::kStrided);
  };
  const c10::IValue* at = arguments(stack);
  if (!std::all_of(at, at + count(), fits)) return false;
  read_cost(stack);
  return can_run(ordinal(first.device().index()), cost_);
}

void RecurrentCall::read_cost(const Stack& stack) {
  cost_.elements = layer_.steps() * layer_.batch() *
                   (layer_.weight_ih.numel() + layer_.weight_hh.numel());
  cost_.flops = spec_.flops;
  const c10::IValue* at = arguments(stack);
  for (size_t i = 0; i < count(); ++i) {
    const Tensor tensor = tensor_of(at[i]);
    if (tensor.defined()) cost_.read(tensor);
  }
  for (const PhysicalDevice* each : ordinal(layer_.input.device().index()).devices) {
    const bool whole = onednn_recurs(*each, layer_, trains(stack));
    cost_.launches.push_back(
        whole ? 1 : kLaunchesPerStep * static_cast<double>(layer_.steps()));
  }
}

void RecurrentCall::forward(size_t position, Stream& stream, Stack* stack) {
  const bool train = trains(*stack);
  // For captures see Note [Capture].
  const bool whole = !is_capturing(stream) &&
                     onednn_recurs(*stream.ordinal().devices[position], layer_, train);
  RecurrentResults made = whole ? onednn_recurrent(layer_, train, position, stream)
                                : layer_by_cells(layer_, train);
  torch::jit::drop(*stack, count());
  push_results(std::move(made), stack);
  tier_ = whole ? Tier::onednn : Tier::sycl;
}

void RecurrentCall::backward(Stream& stream, size_t position, Stack* stack) {
  const RecurrentResults made = results(*stack);
  const c10::IValue* at = arguments(*stack);
  const RecurrentGrads grads{at[0].toTensor(), at[1].toTensor(), tensor_of(at[2])};
  const bool whole = made.form != kByCells;
  RecurrentGradients found;
  if (whole) {
    // What is in the workspace only that device's primitive knows.
    const auto& devices = stream.ordinal().devices;
    const auto known = std::ranges::find(devices, made.form, &PhysicalDevice::id);
    TORCH_CHECK(known != devices.end(),
                "a recurrent layer was computed on a device that xpu:",
                static_cast<int>(layer_.input.device().index()),
                " no longer has: compute it again before backward()");
    position = known - devices.begin();
    note_device((*known)->id);
    found = onednn_recurrent_gradients(layer_, made, grads, position, stream);
  } else {
    found = gradients_by_cells(layer_, made, grads);
  }
  torch::jit::drop(*stack, count());
  torch::jit::push(*stack, std::move(found.input), std::move(found.hx),
                   std::move(found.cx), std::move(found.weight_ih),
                   std::move(found.weight_hh), std::move(found.bias_ih),
                   std::move(found.bias_hh));
  tier_ = whole ? Tier::onednn : Tier::sycl;
}

void RecurrentCall::run(const c10::OperatorHandle&, Stack* stack) {
  Stream& stream = current_stream(layer_.input.device().index());
  const size_t position = choose_device(cost_, stream);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (backward_) {
    backward(stream, position, stack);
  } else {
    forward(position, stream, stack);
  }
}

std::unique_ptr<RowKernel> RecurrentSpec::make(const Overload&) const {
  const RecurrentRoles roles{name.find("lstm") != std::string::npos,
                             name.ends_with("_backward")};
  return make_row<RecurrentCall>(prior_of_asked(*this, kPrimitiveUs), *this, roles);
}

[[maybe_unused]] const bool knows_recurrent = register_kind<RecurrentSpec>("recurrent");

}  // namespace

RecurrentLayer layer_at(const c10::IValue* first, bool lstm) {
  return {lstm,
          first[0].toTensor(),
          first[1].toTensor(),
          tensor_of(first[2]),
          first[3].toTensor(),
          first[4].toTensor(),
          tensor_of(first[5]),
          tensor_of(first[6]),
          first[7].toBool()};
}

void push_results(RecurrentResults made, Stack* stack) {
  torch::jit::push(*stack, std::move(made.output), std::move(made.hy),
                   std::move(made.cy), std::move(made.workspace), made.form);
}

}  // namespace xpurt
