// The row of a recurrent layer in one direction, or of its gradients: by oneDNN where
// it knows the device and has a primitive, else by cells.
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>

#include "capture.h"
#include "element_type.h"
#include "onednn_recurrent.h"
#include "policy.h"
#include "recurrent_cells.h"
#include "row_spec.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

constexpr double kLaunchesPerStep = 2;  // of a product and a cell

class RecurrentRow final : public RowKernel {
 public:
  explicit RecurrentRow(const RowSpec& spec)
      : RowKernel(prior_of_asked(spec, kPrimitiveUs)),
        spec_(spec),
        backward_(spec.name.ends_with("_backward")) {}

  bool accepts(const Stack& stack) const override;
  OpCost cost(const Stack& stack) const override;
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return last_tier_; }

 private:
  // Arguments: of the layer; of its gradients before that; of its results behind it.
  static constexpr size_t kOfLayer = 8, kGrads = 3, kOfResults = 5;

  at::ArrayRef<c10::IValue> arguments(const Stack& stack) const {
    return torch::jit::last(stack,
                            backward_ ? kGrads + kOfLayer + kOfResults : kOfLayer + 1);
  }
  RecurrentLayer layer(const Stack& stack) const {
    return layer_at(&arguments(stack)[backward_ ? kGrads : 0]);
  }
  bool trains(const Stack& stack) const { return backward_ || stack.back().toBool(); }

  // How the last layer of this thread was computed; both forms are one row.
  inline static thread_local Tier last_tier_ = Tier::onednn;

  const RowSpec& spec_;
  const bool backward_;
};

bool RecurrentRow::accepts(const Stack& stack) const {
  const Tensor first = layer(stack).input;
  const char letter = letter_of(first.scalar_type());
  const auto fits = [&](const c10::IValue& value) {
    const Tensor tensor = tensor_or_none(value);
    return !tensor.defined() ||
           (tensor.device() == first.device() && tensor.layout() == c10::kStrided);
  };
  return first.is_xpu() && letter != 0 &&
         spec_.dtypes.find(letter) != std::string::npos &&
         std::ranges::all_of(arguments(stack), fits) &&
         can_run(ordinal(first.device().index()), cost(stack));
}

OpCost RecurrentRow::cost(const Stack& stack) const {
  const RecurrentLayer asked = layer(stack);
  OpCost cost;
  cost.elements = asked.steps() * asked.batch() *
                  (asked.weight_ih.numel() + asked.weight_hh.numel());
  cost.flops = spec_.flops;
  for (const c10::IValue& each : arguments(stack)) {
    const Tensor tensor = tensor_or_none(each);
    if (tensor.defined()) cost.read(tensor);
  }
  for (const PhysicalDevice* each : ordinal(asked.input.device().index()).devices) {
    const bool whole = onednn_recurs(*each, asked, trains(stack));
    cost.launches.push_back(
        whole ? 1 : kLaunchesPerStep * static_cast<double>(asked.steps()));
  }
  return cost;
}

// The position of the device whose primitive made the workspace: no other can read it.
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

void RecurrentRow::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const {
  const RecurrentLayer asked = layer(*stack);
  Stream& stream = current_stream(asked.input.device().index());
  const size_t position = choose_device(cost(*stack), stream, run);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto given = arguments(*stack);
  if (backward_) {
    const RecurrentResults grads{given[0].toTensor(), given[1].toTensor(),
                                 tensor_or_none(given[2])};
    const RecurrentResults made = results_at(&given[kGrads + kOfLayer]);
    const bool whole = made.form != kByCells;
    RecurrentTensors found =
        whole ? onednn_recurrent_gradients(asked, made, grads,
                                           position_of(made, stream, run), stream)
              : gradients_by_cells(asked, made, grads);
    torch::jit::drop(*stack, given.size());
    for (Tensor* each : found.all()) stack->emplace_back(std::move(*each));
    last_tier_ = whole ? Tier::onednn : Tier::sycl;
  } else {
    const bool train = trains(*stack);
    // For captures see Note [Capture].
    const bool whole = !is_capturing(stream) &&
                       onednn_recurs(*stream.ordinal().devices[position], asked, train);
    RecurrentResults made = whole ? onednn_recurrent(asked, train, position, stream)
                                  : layer_by_cells(asked, train);
    torch::jit::drop(*stack, given.size());
    torch::jit::push(*stack, std::move(made.output), std::move(made.hy),
                     std::move(made.cy), std::move(made.workspace), made.form);
    last_tier_ = whole ? Tier::onednn : Tier::sycl;
  }
}

}  // namespace

std::unique_ptr<RowKernel> make_recurrent(const RowSpec& spec) {
  return std::make_unique<RecurrentRow>(spec);
}

}  // namespace xpurt
