// Layers of LSTM and GRU in one direction, and their gradients: by oneDNN where it
// knows the device and has a primitive, else by cells.
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>

#include "capture.h"
#include "element_type.h"
#include "onednn_recurrent.h"
#include "policy.h"
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

class RecurrentRow final : public RowKernel {
 public:
  RecurrentRow(const RowSpec& spec, bool lstm, bool backward)
      : RowKernel(prior_of_asked(spec, kPrimitiveUs)),
        spec_(spec),
        lstm_(lstm),
        backward_(backward) {}

  bool accepts(const Stack& stack) const override;
  OpCost cost(const Stack& stack) const override;
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return last_tier_; }

 private:
  size_t count() const {
    return backward_ ? kGrads + kOfLayer + kOfResults : kOfLayer + 1;
  }
  const c10::IValue* arguments(const Stack& stack) const {
    return &stack[stack.size() - count()];
  }
  bool trains(const Stack& stack) const { return backward_ || stack.back().toBool(); }
  RecurrentLayer layer(const Stack& stack) const {
    return layer_at(arguments(stack) + (backward_ ? kGrads : 0), lstm_);
  }
  RecurrentResults results(const Stack& stack) const;
  void forward(const RecurrentLayer& layer, size_t position, Stream& stream,
               Stack* stack) const;
  void backward(const RecurrentLayer& layer, Stream& stream, size_t position,
                Stack* stack, RowRun& run) const;

  // How the last layer of this thread was computed; both forms are one row.
  inline static thread_local Tier last_tier_ = Tier::onednn;

  const RowSpec& spec_;
  const bool lstm_, backward_;
};

RecurrentResults RecurrentRow::results(const Stack& stack) const {
  const c10::IValue* at = arguments(stack) + kGrads + kOfLayer;
  return {at[0].toTensor(), at[1].toTensor(), tensor_of(at[2]), at[3].toTensor(),
          at[4].toInt()};
}

bool RecurrentRow::accepts(const Stack& stack) const {
  const RecurrentLayer asked = layer(stack);
  const Tensor& first = asked.input;
  const char letter = letter_of(first.scalar_type());
  if (!first.is_xpu() || letter == 0 ||
      spec_.dtypes.find(letter) == std::string::npos) {
    return false;
  }
  const auto fits = [&](const c10::IValue& value) {
    const Tensor tensor = tensor_of(value);
    return !tensor.defined() ||
           (tensor.device() == first.device() && tensor.layout() == c10::kStrided);
  };
  const c10::IValue* at = arguments(stack);
  return std::all_of(at, at + count(), fits) &&
         can_run(ordinal(first.device().index()), cost(stack));
}

OpCost RecurrentRow::cost(const Stack& stack) const {
  const RecurrentLayer asked = layer(stack);
  OpCost cost;
  cost.elements = asked.steps() * asked.batch() *
                  (asked.weight_ih.numel() + asked.weight_hh.numel());
  cost.flops = spec_.flops;
  const c10::IValue* at = arguments(stack);
  for (size_t i = 0; i < count(); ++i) {
    const Tensor tensor = tensor_of(at[i]);
    if (tensor.defined()) cost.read(tensor);
  }
  for (const PhysicalDevice* each : ordinal(asked.input.device().index()).devices) {
    const bool whole = onednn_recurs(*each, asked, trains(stack));
    cost.launches.push_back(
        whole ? 1 : kLaunchesPerStep * static_cast<double>(asked.steps()));
  }
  return cost;
}

void RecurrentRow::forward(const RecurrentLayer& layer, size_t position, Stream& stream,
                           Stack* stack) const {
  const bool train = trains(*stack);
  // For captures see Note [Capture].
  const bool whole = !is_capturing(stream) &&
                     onednn_recurs(*stream.ordinal().devices[position], layer, train);
  RecurrentResults made = whole ? onednn_recurrent(layer, train, position, stream)
                                : layer_by_cells(layer, train);
  torch::jit::drop(*stack, count());
  push_results(std::move(made), stack);
  last_tier_ = whole ? Tier::onednn : Tier::sycl;
}

void RecurrentRow::backward(const RecurrentLayer& layer, Stream& stream,
                            size_t position, Stack* stack, RowRun& run) const {
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
                static_cast<int>(layer.input.device().index()),
                " no longer has: compute it again before backward()");
    position = known - devices.begin();
    run.device_id = (*known)->id;
    found = onednn_recurrent_gradients(layer, made, grads, position, stream);
  } else {
    found = gradients_by_cells(layer, made, grads);
  }
  torch::jit::drop(*stack, count());
  torch::jit::push(*stack, std::move(found.input), std::move(found.hx),
                   std::move(found.cx), std::move(found.weight_ih),
                   std::move(found.weight_hh), std::move(found.bias_ih),
                   std::move(found.bias_hh));
  last_tier_ = whole ? Tier::onednn : Tier::sycl;
}

void RecurrentRow::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const {
  const RecurrentLayer asked = layer(*stack);
  Stream& stream = current_stream(asked.input.device().index());
  const size_t position = choose_device(cost(*stack), stream, run);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (backward_) {
    backward(asked, stream, position, stack, run);
  } else {
    forward(asked, position, stream, stack);
  }
}

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

std::unique_ptr<RowKernel> make_recurrent(const RowSpec& spec) {
  return std::make_unique<RecurrentRow>(spec,
                                        spec.name.find("lstm") != std::string::npos,
                                        spec.name.ends_with("_backward"));
}

}  // namespace xpurt
