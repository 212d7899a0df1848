// Convolutions: by oneDNN if it supports the device and has a primitive for the
// operands, else by matrix products.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "memory/replica/device_override.h"
#include "onednn/convolution.h"
#include "op/row_call.h"
#include "rows/decomposed.h"
#include "rows/run_split.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

struct ConvolutionSpec final : DecomposedSpec {
  using DecomposedSpec::DecomposedSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

struct ConvolutionRoles {
  bool backward = false;
  size_t count = 0;  // of arguments
  std::unique_ptr<Decomposition> by_products;
};

class ConvolutionCall final : public RowCall {
 public:
  ConvolutionCall(const ConvolutionSpec& spec, const ConvolutionRoles& roles)
      : spec_(spec),
        backward_(roles.backward),
        count_(roles.count),
        by_products_(*roles.by_products) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) override;

 private:
  void read_arguments(const Stack& stack);
  void read_cost(const Stack& stack);
  const Tensor& grad(const Stack& stack) const {
    return stack[stack.size() - count_].toTensor();
  }
  std::array<bool, 3> wanted(const Stack& stack) const;
  Tensor in_shards(const Stack& stack, Stream& stream, RowRun& run) const;
  bool gradients_in_shards(const Stack& stack, Stream& stream, RowRun& run,
                           ConvolutionGradients* gradients) const;
  void give_gradients(Stack* stack, ConvolutionGradients* gradients) const;
  bool run_in_shards(Stack* stack, Stream& stream, RowRun& run) const;
  bool run_onednn(size_t position, Stack* stack, Stream& stream) const;

  const ConvolutionSpec& spec_;
  const bool backward_;
  const size_t count_;
  const Decomposition& by_products_;
  Convolution asked_;
};

void ConvolutionCall::read_arguments(const Stack& stack) {
  const c10::IValue* at = &stack[stack.size() - count_ + (backward_ ? 1 : 0)];
  Convolution& read = asked_;
  read.input = (at++)->toTensor();
  read.weight = (at++)->toTensor();
  if (!backward_) {
    read.bias = at->isNone() ? Tensor() : at->toTensor();
    ++at;
  }
  read.stride = (at++)->toIntVector();
  read.padding = (at++)->toIntVector();
  read.dilation = (at++)->toIntVector();
  read.transposed = (at++)->toBool();
  read.output_padding = (at++)->toIntVector();
  read.groups = (at++)->toInt();
}

std::array<bool, 3> ConvolutionCall::wanted(const Stack& stack) const {
  const auto list = stack.back().toBoolList();
  return {list[0], list[1], list[2]};
}

void ConvolutionCall::read_cost(const Stack& stack) {
  cost_.elements = asked_.multiply_adds();
  cost_.flops = spec_.flops;
  cost_.read(asked_.input);
  cost_.read_whole(asked_.weight);
  if (backward_) {
    cost_.read(grad(stack));
    if (wanted(stack)[1]) {
      cost_.summed_bytes = static_cast<int64_t>(asked_.weight.nbytes());
    }
  }
  if (asked_.input.dim() >= 3) cost_.rows = asked_.input.size(0);
}

// PyTorch checks these within the functions of its CPU kernels.
bool is_valid(const Convolution& of) {
  const auto type = of.input.scalar_type();
  if (of.weight.scalar_type() != type) return false;
  if (of.bias.defined() && of.bias.scalar_type() != type) return false;
  const auto is_positive = [](int64_t each) { return each > 0; };
  const auto kernel = of.weight.sizes().slice(std::min<size_t>(of.weight.dim(), 2));
  if (!std::ranges::all_of(of.dilation, is_positive) ||
      !std::ranges::all_of(kernel, is_positive)) {
    return false;
  }
  if (!of.transposed) return true;
  const auto at = [](const std::vector<int64_t>& list, size_t axis) {
    return list.size() == 1 ? list[0] : list.at(axis);
  };
  for (size_t axis = 0; axis < of.output_padding.size(); ++axis) {
    const size_t axes = std::min(of.stride.size(), of.dilation.size());
    if (axis >= axes && axes > 1) return false;
    if (of.output_padding[axis] >= std::max(at(of.stride, axis), at(of.dilation, axis)))
      return false;
  }
  return true;
}

// Throws what PyTorch throws for invalid arguments. PyTorch's function gets single
// numbers, expanded to the operands' sizes, so that nothing is copied.
void refuse(const Convolution& of) {
  const auto shape = [](const Tensor& tensor) {
    return at::zeros({}, tensor.options().device(c10::DeviceType::CPU))
        .expand(tensor.sizes());
  };
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto bias = of.bias.defined() ? std::optional(shape(of.bias)) : std::nullopt;
  at::convolution(shape(of.input), shape(of.weight), bias, of.stride, of.padding,
                  of.dilation, of.transposed, of.output_padding, of.groups);
}

bool ConvolutionCall::read(const Stack& stack) {
  if (!by_products_.accepts(stack)) return false;
  read_arguments(stack);
  if (!backward_ && !is_valid(asked_)) refuse(asked_);
  read_cost(stack);
  return true;
}

// Whether the device has primitives for a convolution of this type.
bool has_primitives(const Convolution& convolution, const PhysicalDevice& device) {
  if (!convolution.is_sound()) return false;
  const auto type = convolution.input.scalar_type();
  const Tensor& bias = convolution.bias;
  return convolution.weight.scalar_type() == type &&
         (!bias.defined() || bias.scalar_type() == type) &&
         onednn_convolves(device, convolution, ConvolutionPart::output, bias.defined());
}

// The same for the wanted gradients of the input, the weight and the bias.
bool has_primitives(const Convolution& convolution, const Tensor& grad,
                    std::array<bool, 3> wanted, const PhysicalDevice& device) {
  if (!convolution.is_sound()) return false;
  const auto type = convolution.input.scalar_type();
  if (convolution.weight.scalar_type() != type || grad.scalar_type() != type ||
      !grad.sizes().equals(convolution.output_sizes())) {
    return false;
  }
  const auto [input, weight, bias] = wanted;
  const bool first = !input || onednn_convolves(device, convolution,
                                                ConvolutionPart::input_gradient, false);
  return first && (!weight || onednn_convolves(device, convolution,
                                               ConvolutionPart::weight_gradient, bias));
}

// Divides the batch among devices: each computes some images. Undefined if the call is
// not to be divided.
Tensor ConvolutionCall::in_shards(const Stack& stack, Stream& stream,
                                  RowRun& run) const {
  if (backward_ || asked_.input.dim() < 3) return {};
  const ShardList shards = shards_by_row(cost_, asked_.input.size(0), stream, run);
  if (shards.empty()) return {};
  const Tensor output = empty_output(asked_);
  const Tensor input = asked_.input.contiguous(asked_.memory_format());
  run_shards(shards, stream.ordinal(), run, [&](const Shard& shard) {
    Convolution of_images = asked_;
    of_images.input = rows_of(input, shard);
    const Tensor images = rows_of(output, shard);
    if (has_primitives(of_images, *stream.ordinal().devices[shard.position])) {
      return onednn_convolution(of_images, images, shard.position, stream);
    }
    Stack arguments(stack.end() - count_, stack.end());
    arguments[0] = of_images.input;
    by_products_.run(&arguments);
    images.copy_(arguments.back().toTensor());
  });
  return output;
}

// Note [Shards of a convolution's gradients]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The gradients are divided by images, as the forward pass is: the activations and
// their gradients are then already where they are needed. The gradient of the input
// has a row per image. Those of the weight and of the bias are sums over all images, so
// each device computes a partial sum, and the partial sums are added at the end. They
// are as large as the weight, which is small beside the activations. A division by
// output channels needs no sum, but each device would read all of the input, and a
// block of channels is no range of bytes of the incoming gradient.
//
// Computes the wanted gradients. False if the call is not to be divided.
bool ConvolutionCall::gradients_in_shards(const Stack& stack, Stream& stream,
                                          RowRun& run,
                                          ConvolutionGradients* gradients) const {
  if (!backward_ || asked_.input.dim() < 3) return false;
  const auto& devices = stream.ordinal().devices;
  const auto all_wanted = wanted(stack);
  const Tensor& incoming = grad(stack);
  if (!has_primitives(asked_, incoming, all_wanted, stream.ordinal().home_device()))
    return false;
  const ShardList shards = shards_by_row(cost_, asked_.input.size(0), stream, run);
  if (shards.empty()) return false;
  const auto format = asked_.memory_format();
  const Tensor input = asked_.input.contiguous(format);
  const Tensor dense_grad = incoming.contiguous(format);
  *gradients = empty_gradients(asked_, {all_wanted[0], false, false});
  // By the shard's first image: a shard that moves home keeps its partial sums.
  std::map<int64_t, ConvolutionGradients> partial;
  run_shards(shards, stream.ordinal(), run, [&](const Shard& shard) {
    Convolution of_images = asked_;
    of_images.input = rows_of(input, shard);
    const Tensor grad_of_images = rows_of(dense_grad, shard);
    ConvolutionGradients& of_shard = partial[shard.begin];
    of_shard = empty_gradients(of_images, {false, all_wanted[1], all_wanted[2]});
    if (all_wanted[0]) of_shard[0] = rows_of((*gradients)[0], shard);
    if (has_primitives(of_images, grad_of_images, all_wanted,
                       *devices[shard.position])) {
      onednn_convolution_gradients(of_images, grad_of_images, of_shard, shard.position,
                                   stream);
      return;
    }
    Stack arguments(stack.end() - count_, stack.end());
    arguments[0] = grad_of_images;
    arguments[1] = of_images.input;
    by_products_.run(&arguments);
    for (size_t i = 0; i < of_shard.size(); ++i) {
      if (all_wanted[i])
        of_shard[i].copy_(arguments[arguments.size() - of_shard.size() + i].toTensor());
    }
  });
  for (const size_t summed : {1, 2}) {
    if (!all_wanted[summed]) continue;
    Tensor& sum = (*gradients)[summed];
    sum = partial.begin()->second[summed];
    for (auto each = std::next(partial.begin()); each != partial.end(); ++each) {
      sum.add_(each->second[summed]);
    }
  }
  return true;
}

void ConvolutionCall::give_gradients(Stack* stack,
                                     ConvolutionGradients* gradients) const {
  torch::jit::drop(*stack, count_);
  for (Tensor& each : *gradients) torch::jit::push(*stack, std::move(each));
}

// Computes the call in shards. False if it is not to be divided.
bool ConvolutionCall::run_in_shards(Stack* stack, Stream& stream, RowRun& run) const {
  if (Tensor output = in_shards(*stack, stream, run); output.defined()) {
    give_result(stack, count_, std::move(output));
    return true;
  }
  ConvolutionGradients gradients;
  if (!gradients_in_shards(*stack, stream, run, &gradients)) return false;
  give_gradients(stack, &gradients);
  return true;
}

// Computes the call by oneDNN. False if the device has no primitives for it.
bool ConvolutionCall::run_onednn(size_t position, Stack* stack, Stream& stream) const {
  const PhysicalDevice& device = *stream.ordinal().devices[position];
  if (!backward_) {
    if (!has_primitives(asked_, device)) return false;
    Tensor output = empty_output(asked_);
    onednn_convolution(asked_, output, position, stream);
    give_result(stack, count_, std::move(output));
    return true;
  }
  if (!has_primitives(asked_, grad(*stack), wanted(*stack), device)) return false;
  ConvolutionGradients gradients = empty_gradients(asked_, wanted(*stack));
  onednn_convolution_gradients(asked_, grad(*stack), gradients, position, stream);
  give_gradients(stack, &gradients);
  return true;
}

void ConvolutionCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  Stream& stream = current_stream(asked_.input.device().index());
  tier_ = Tier::onednn;
  std::optional<OnChosenDevice> there;
  // For captures see Note [Capture].
  if (asked_.is_sound() && !is_capturing(stream)) {
    if (run_in_shards(stack, stream, run)) return;
    const size_t position = choose_device(cost_, stream, run);
    if (run_onednn(position, stack, stream)) return;
    there.emplace(position, stream.ordinal().home);
  }
  by_products_.run(stack);
  tier_ = Tier::sycl;
}

std::unique_ptr<RowKernel> ConvolutionSpec::make(const Overload& overload) const {
  if (std::ranges::any_of(overload.schema().arguments(), is_written)) {
    return DecomposedSpec::make(overload);
  }
  ConvolutionRoles roles{name == "convolution_backward_overrideable",
                         overload.schema().arguments().size(),
                         Decomposition::of(*this, overload)};
  return make_row<ConvolutionCall>(asked_prior(*this, kPrimitiveUs), *this,
                                   std::move(roles));
}

[[maybe_unused]] const bool knows_convolution =
    register_kind<ConvolutionSpec>("convolution");

}  // namespace
}  // namespace xpurt
