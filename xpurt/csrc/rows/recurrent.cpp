// The row of a recurrent layer in one direction, or of its gradients: by oneDNN if it
// supports the device and has a primitive, else by cells.
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>

#include "memory/replica/device_override.h"
#include "onednn/recurrent.h"
#include "op/element_type.h"
#include "op/row_call.h"
#include "op/row_spec.h"
#include "rows/recurrent_cells.h"
#include "schedule/policy.h"
#include "schedule/row_run.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr double kLaunchesPerStep = 2;  // a product and a cell

struct RecurrentSpec final : RowSpec {
  using RowSpec::RowSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

class RecurrentCall final : public RowCall {
 public:
  RecurrentCall(const RecurrentSpec& spec, bool backward)
      : spec_(spec), backward_(backward) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) override;

 private:
  // Numbers of arguments. The backward op takes gradients, then the layer, then its
  // results.
  static constexpr size_t kOfLayer = 8, kGrads = 3, kOfResults = 5;

  at::ArrayRef<c10::IValue> arguments(const Stack& stack) const {
    return torch::jit::last(stack,
                            backward_ ? kGrads + kOfLayer + kOfResults : kOfLayer + 1);
  }
  bool trains(const Stack& stack) const { return backward_ || stack.back().toBool(); }
  void read_cost(const Stack& stack);
  void forward(size_t position, Stream& stream, Stack* stack);
  void backward(size_t position, Stream& stream, Stack* stack, RowRun& run);

  const RecurrentSpec& spec_;
  const bool backward_;
  RecurrentLayer layer_;
};

bool RecurrentCall::read(const Stack& stack) {
  layer_ = layer_at(&arguments(stack)[backward_ ? kGrads : 0]);
  const Tensor& first = layer_.input;
  if (!first.is_xpu() || !spec_.has_type(first.scalar_type())) return false;
  const auto fits = [&](const c10::IValue& value) {
    const Tensor tensor = tensor_or_none(value);
    return !tensor.defined() ||
           (tensor.device() == first.device() && tensor.layout() == c10::kStrided);
  };
  if (!std::ranges::all_of(arguments(stack), fits)) return false;
  read_cost(stack);
  return can_run(ordinal(first.device().index()), cost_);
}

void RecurrentCall::read_cost(const Stack& stack) {
  cost_.elements = layer_.steps() * layer_.batch() *
                   (layer_.weight_ih.numel() + layer_.weight_hh.numel());
  cost_.flops = spec_.flops;
  for (const c10::IValue& each : arguments(stack)) {
    const Tensor tensor = tensor_or_none(each);
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
  const auto by_cells = [&] {
    const OnChosenDevice there(position, stream.ordinal().home);
    return layer_by_cells(layer_, train);
  };
  RecurrentResults made =
      whole ? onednn_recurrent(layer_, train, position, stream) : by_cells();
  torch::jit::drop(*stack, arguments(*stack).size());
  torch::jit::push(*stack, std::move(made.output), std::move(made.hy),
                   std::move(made.cy), std::move(made.workspace), made.form);
  tier_ = whole ? Tier::onednn : Tier::sycl;
}

// The position of the device whose primitive made the workspace: no other device can
// read it. Raises RuntimeError if the ordinal no longer has that device.
size_t position_of(const RecurrentResults& made, const Stream& stream, RowRun& run) {
  const auto& devices = stream.ordinal().devices;
  const auto known = std::ranges::find(devices, made.form, &PhysicalDevice::id);
  TORCH_CHECK(known != devices.end(),
              "a recurrent layer was computed on a device that xpu:",
              static_cast<int>(made.output.device().index()),
              " no longer has: compute it again before backward()");
  run.device_id = (*known)->id;
  return known - devices.begin();
}

void RecurrentCall::backward(size_t position, Stream& stream, Stack* stack,
                             RowRun& run) {
  const auto given = arguments(*stack);
  const RecurrentResults grads{given[0].toTensor(), given[1].toTensor(),
                               tensor_or_none(given[2])};
  const RecurrentResults made = results_at(&given[kGrads + kOfLayer]);
  const bool whole = made.form != kByCells;
  const auto by_cells = [&] {
    const OnChosenDevice there(position, stream.ordinal().home);
    return gradients_by_cells(layer_, made, grads);
  };
  RecurrentTensors found =
      whole ? onednn_recurrent_gradients(layer_, made, grads,
                                         position_of(made, stream, run), stream)
            : by_cells();
  torch::jit::drop(*stack, given.size());
  for (Tensor* each : found.all()) stack->emplace_back(std::move(*each));
  tier_ = whole ? Tier::onednn : Tier::sycl;
}

void RecurrentCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  Stream& stream = current_stream(layer_.input.device().index());
  const size_t position = choose_device(cost_, stream, run);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (backward_) {
    backward(position, stream, stack, run);
  } else {
    forward(position, stream, stack);
  }
}

std::unique_ptr<RowKernel> RecurrentSpec::make(const Overload&) const {
  return make_row<RecurrentCall>(asked_prior(*this, kPrimitiveUs), *this,
                                 name.ends_with("_backward"));
}

[[maybe_unused]] const bool knows_recurrent = register_kind<RecurrentSpec>("recurrent");

}  // namespace
}  // namespace xpurt
