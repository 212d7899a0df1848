// Convolutions: oneDNN where it knows the device and has a primitive for the operands,
// else by way of products of matrices.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "capture.h"
#include "onednn_convolution.h"
#include "policy.h"
#include "row_spec.h"
#include "split.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

class ConvolutionRow final : public RowKernel {
 public:
  ConvolutionRow(const RowSpec& spec, const c10::OperatorHandle& op,
                 const std::vector<c10::OperatorHandle>& overloads)
      : RowKernel(prior_of_asked(spec, kPrimitiveUs)),
        spec_(spec),
        backward_(spec.name == "convolution_backward_overrideable"),
        count_(op.schema().arguments().size()),
        by_products_(make_decomposed(spec, op, overloads)) {}

  bool accepts(const Stack& stack) const override;
  OpCost cost(const Stack& stack) const override { return cost(read(stack), stack); }
  void run(const c10::OperatorHandle& op, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return last_tier_; }

 private:
  Convolution read(const Stack& stack) const;
  const Tensor& grad(const Stack& stack) const {
    return stack[stack.size() - count_].toTensor();
  }
  std::array<bool, 3> wanted(const Stack& stack) const;
  OpCost cost(const Convolution& convolution, const Stack& stack) const;
  Tensor in_pieces(const c10::OperatorHandle& op, const Convolution& asked,
                   const Stack& stack, Stream& stream, RowRun& run) const;
  bool has_primitives(const Convolution& convolution, const Stack& stack,
                      const PhysicalDevice& device) const;

  // How the last convolution of this thread was computed; both forms are one row.
  inline static thread_local Tier last_tier_ = Tier::onednn;

  const RowSpec& spec_;
  const bool backward_;
  const size_t count_;
  const std::unique_ptr<RowKernel> by_products_;
};

Convolution ConvolutionRow::read(const Stack& stack) const {
  const c10::IValue* at = &stack[stack.size() - count_ + (backward_ ? 1 : 0)];
  Convolution read;
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
  return read;
}

std::array<bool, 3> ConvolutionRow::wanted(const Stack& stack) const {
  const auto list = stack.back().toBoolList();
  return {list[0], list[1], list[2]};
}

OpCost ConvolutionRow::cost(const Convolution& convolution, const Stack& stack) const {
  OpCost cost;
  cost.elements = convolution.multiply_adds();
  cost.flops = spec_.flops;
  cost.read(convolution.input);
  cost.read(convolution.weight);
  if (backward_) cost.read(grad(stack));
  if (!backward_ && convolution.input.dim() >= 3) cost.rows = convolution.input.size(0);
  return cost;
}

// Throws what PyTorch throws for operands of different types. It sees single numbers
// that are expanded, so that nothing is copied for it.
void refuse_types(const Convolution& of) {
  const auto shape = [](const Tensor& tensor) {
    return at::zeros({}, tensor.options().device(c10::DeviceType::CPU))
        .expand(tensor.sizes());
  };
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto bias = of.bias.defined() ? std::optional(shape(of.bias)) : std::nullopt;
  at::convolution(shape(of.input), shape(of.weight), bias, of.stride, of.padding,
                  of.dilation, of.transposed, of.output_padding, of.groups);
}

bool ConvolutionRow::accepts(const Stack& stack) const {
  if (!by_products_->accepts(stack)) return false;
  const Convolution asked = read(stack);
  const auto type = asked.input.scalar_type();
  const bool of_one_type = asked.weight.scalar_type() == type &&
                           (!asked.bias.defined() || asked.bias.scalar_type() == type);
  if (!backward_ && !of_one_type) refuse_types(asked);
  return true;
}

bool ConvolutionRow::has_primitives(const Convolution& convolution, const Stack& stack,
                                    const PhysicalDevice& device) const {
  if (!convolution.is_sound()) return false;
  const auto type = convolution.input.scalar_type();
  if (convolution.weight.scalar_type() != type) return false;
  if (!backward_) {
    const Tensor& bias = convolution.bias;
    if (bias.defined() && bias.scalar_type() != type) return false;
    return onednn_convolves(device, convolution, ConvolutionPart::output,
                            bias.defined());
  }
  const Tensor& incoming = grad(stack);
  if (incoming.scalar_type() != type ||
      !incoming.sizes().equals(convolution.output_sizes())) {
    return false;
  }
  const auto [input, weight, bias] = wanted(stack);
  const bool first = !input || onednn_convolves(device, convolution,
                                                ConvolutionPart::input_gradient, false);
  return first && (!weight || onednn_convolves(device, convolution,
                                               ConvolutionPart::weight_gradient, bias));
}

// Each device takes some images of the batch. Undefined where that is not to be.
Tensor ConvolutionRow::in_pieces(const c10::OperatorHandle& op,
                                 const Convolution& asked, const Stack& stack,
                                 Stream& stream, RowRun& run) const {
  const OpCost all = cost(asked, stack);
  if (backward_ || asked.input.dim() < 3 || !may_split(all, stream, run)) return {};
  const PieceList pieces = split(all, asked.input.size(0), 1, stream, run);
  if (pieces.empty()) return {};
  const Tensor output = empty_output(asked);
  const Tensor input = asked.input.contiguous(asked.memory_format());
  run_pieces(pieces, stream.ordinal(), run, [&](const Piece& piece) {
    Convolution of_images = asked;
    of_images.input = rows_of(input, piece);
    const Tensor images = rows_of(output, piece);
    if (has_primitives(of_images, stack, *stream.ordinal().devices[piece.position])) {
      return onednn_convolution(of_images, images, piece.position, stream);
    }
    Stack arguments(stack.end() - count_, stack.end());
    arguments[0] = of_images.input;
    by_products_->run(op, &arguments, run);
    images.copy_(arguments.back().toTensor());
  });
  return output;
}

void ConvolutionRow::run(const c10::OperatorHandle& op, Stack* stack,
                         RowRun& run) const {
  const Convolution asked = read(*stack);
  Stream& stream = current_stream(asked.input.device().index());
  // For captures see Note [Capture].
  if (asked.is_sound() && !is_capturing(stream)) {
    if (Tensor output = in_pieces(op, asked, *stack, stream, run); output.defined()) {
      torch::jit::drop(*stack, count_);
      torch::jit::push(*stack, std::move(output));
      last_tier_ = Tier::onednn;
      return;
    }
    const size_t position = choose_device(cost(asked, *stack), stream, run);
    if (has_primitives(asked, *stack, *stream.ordinal().devices[position])) {
      if (!backward_) {
        Tensor output = empty_output(asked);
        onednn_convolution(asked, output, position, stream);
        torch::jit::drop(*stack, count_);
        torch::jit::push(*stack, std::move(output));
      } else {
        auto [input, weight, bias] = onednn_convolution_gradients(
            asked, grad(*stack), wanted(*stack), position, stream);
        torch::jit::drop(*stack, count_);
        torch::jit::push(*stack, std::move(input), std::move(weight), std::move(bias));
      }
      last_tier_ = Tier::onednn;
      return;
    }
  }
  by_products_->run(op, stack, run);
  last_tier_ = by_products_->tier();
}

}  // namespace

std::unique_ptr<RowKernel> make_convolution(
    const RowSpec& spec, const c10::OperatorHandle& op,
    const std::vector<c10::OperatorHandle>& overloads) {
  const auto& arguments = op.schema().arguments();
  if (std::any_of(arguments.begin(), arguments.end(), is_written)) {
    return make_decomposed(spec, op, overloads);
  }
  return std::make_unique<ConvolutionRow>(spec, op, overloads);
}

}  // namespace xpurt
