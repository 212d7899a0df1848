// Scaled dot product attention: by products of panels where they take least, else by
// products of oneDNN if it supports the device and the type, else by xpurt's tiled
// kernel.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cmath>

#include "onednn/matmul.h"
#include "op/element_type.h"
#include "op/row_call.h"
#include "op/row_spec.h"
#include "rows/attention.h"
#include "schedule/policy.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Positions of the arguments; -1 for an argument that the op does not have.
struct AttentionRoles {
  int grad = -1, query = -1, key = -1, value = -1, out = -1, sums = -1;
  int dropout = -1, causal = -1, mask = -1, scale = -1;
  int count = 0;
};

struct AttentionSpec final : RowSpec {
  using RowSpec::RowSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

class AttentionCall final : public RowCall {
 public:
  AttentionCall(const AttentionSpec& spec, const AttentionRoles& roles)
      : spec_(spec), roles_(roles) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) override;

 private:
  const c10::IValue& argument(const Stack& stack, int at) const {
    return stack[stack.size() - roles_.count + at];
  }
  bool is_backward() const { return roles_.grad >= 0; }
  void read_arguments(const Stack& stack);
  bool fits(const Stack& stack) const;
  void add_cost(const Attention& asked, OpCost* cost) const;
  void forward(const Attention& asked, size_t position, bool products,
               Stack* stack) const;
  AttentionBackward given_backward(const Stack& stack) const;
  void backward(const Attention& asked, size_t position, bool products,
                Stack* stack) const;
  void by_panels(const Attention& asked, Stack* stack) const;

  const AttentionSpec& spec_;
  const AttentionRoles& roles_;
  Attention asked_;
};

// Matrix products need dense rows of heads, and operands that are not expanded.
Tensor plain_operand(const Tensor& tensor) {
  const auto strides = tensor.strides();
  const bool gaps = tensor.size(3) > 1 && strides[3] != 1;
  return gaps || std::any_of(strides.begin(), strides.end(),
                             [](int64_t stride) { return stride == 0; })
             ? tensor.contiguous()
             : tensor;
}

void AttentionCall::read_arguments(const Stack& stack) {
  Attention& asked = asked_;
  asked.row = spec_.index;
  asked.query = argument(stack, roles_.query).toTensor();
  asked.key = argument(stack, roles_.key).toTensor();
  asked.value = argument(stack, roles_.value).toTensor();
  asked.causal = argument(stack, roles_.causal).toBool();
  const c10::IValue& scale = argument(stack, roles_.scale);
  const auto size = static_cast<double>(asked.query.size(-1));
  asked.scale = scale.isNone() ? 1 / std::sqrt(size) : scale.toDouble();
  const c10::IValue& mask = argument(stack, roles_.mask);
  if (!mask.isNone() && mask.toTensor().defined()) asked.mask = mask.toTensor();
}

void AttentionCall::add_cost(const Attention& asked, OpCost* cost) const {
  // The number of multiply-adds of each product.
  cost->elements = asked.query.numel() * asked.key.size(2);
  cost->flops = spec_.flops;
  for (const Tensor* each : {&asked.query, &asked.key, &asked.value}) {
    cost->read(*each);
  }
}

bool AttentionCall::fits(const Stack& stack) const {
  const Attention& asked = asked_;
  const Tensor& query = asked.query;
  const auto is_alike = [&](const Tensor& tensor) {
    return tensor.device() == query.device() && tensor.layout() == c10::kStrided &&
           tensor.dim() == 4 && tensor.scalar_type() == query.scalar_type();
  };
  for (const Tensor* each : {&asked.query, &asked.key, &asked.value}) {
    if (!is_alike(*each) || each->size(0) != asked.batch() ||
        each->size(1) != asked.heads() || each->size(3) != asked.size()) {
      return false;
    }
  }
  if (asked.key.size(2) == 0 || asked.value.size(2) != asked.key.size(2)) return false;
  if (asked.mask.defined()) {
    const auto type = asked.mask.scalar_type();
    if (asked.mask.device() != query.device() ||
        (type != query.scalar_type() && type != at::kFloat) ||
        !at::is_expandable_to(asked.mask.sizes(), {asked.batch(), asked.heads(),
                                                   asked.queries(), asked.keys()})) {
      return false;
    }
  }
  if (is_backward() && !is_alike(argument(stack, roles_.grad).toTensor())) return false;
  return true;
}

bool AttentionCall::read(const Stack& stack) {
  const Tensor& query = argument(stack, roles_.query).toTensor();
  if (!query.is_xpu() || query.dim() != 4 || query.numel() == 0 ||
      !spec_.has_type(query.scalar_type()) ||
      argument(stack, roles_.dropout).toDouble() != 0) {
    return false;
  }
  read_arguments(stack);
  if (!fits(stack)) return false;
  add_cost(asked_, &cost_);
  const Ordinal& on = ordinal(query.device().index());
  return can_run(on, cost_) &&
         std::all_of(on.devices.begin(), on.devices.end(), [&](const auto* device) {
           return attention_fits_tiles(asked_, *device);
         });
}

// A gradient in the layout of PyTorch's CPU kernel: the heads of a token are adjacent.
Tensor heads_inside(const Attention& asked, int64_t tokens) {
  return at::empty({asked.batch(), tokens, asked.heads(), asked.size()},
                   asked.query.options())
      .transpose(1, 2);
}

void AttentionCall::forward(const Attention& asked, size_t position, bool products,
                            Stack* stack) const {
  Attended made;
  // PyTorch's CPU kernel keeps the layout of the query, and compiled code relies on it.
  Tensor out = at::empty_like(asked_.query);
  const bool plain = out.size(3) == 1 || out.stride(3) == 1;
  made.out = plain ? out : heads_inside(asked, asked.queries());
  made.sums =
      at::empty({asked.batch(), asked.queries(), asked.heads()},
                asked.query.options().dtype(computed_in(asked.query.scalar_type())))
          .transpose(1, 2);
  (products ? attend_by_products : attend_by_tiles)(asked, made, position);
  if (!plain) out.copy_(made.out);
  torch::jit::drop(*stack, roles_.count);
  torch::jit::push(*stack, std::move(out), std::move(made.sums));
}

AttentionBackward AttentionCall::given_backward(const Stack& stack) const {
  AttentionBackward given;
  given.grad = plain_operand(argument(stack, roles_.grad).toTensor());
  given.sums = argument(stack, roles_.sums).toTensor();
  given.out = argument(stack, roles_.out).toTensor();
  return given;
}

void AttentionCall::backward(const Attention& asked, size_t position, bool products,
                             Stack* stack) const {
  const AttentionBackward given = given_backward(*stack);
  const AttentionGradients made{heads_inside(asked, asked.queries()),
                                heads_inside(asked, asked.keys()),
                                heads_inside(asked, asked.keys())};
  (products ? attend_backward_by_products : attend_backward_by_tiles)(asked, given,
                                                                      made, position);
  torch::jit::drop(*stack, roles_.count);
  for (const Tensor& each : made) torch::jit::push(*stack, each);
}

void AttentionCall::by_panels(const Attention& asked, Stack* stack) const {
  if (is_backward()) {
    const AttentionGradients made =
        attend_backward_by_panels(asked, given_backward(*stack));
    torch::jit::drop(*stack, roles_.count);
    for (const Tensor& each : made) torch::jit::push(*stack, each);
    return;
  }
  Attended made = attend_by_panels(asked);
  torch::jit::drop(*stack, roles_.count);
  torch::jit::push(*stack, std::move(made.out), std::move(made.sums));
}

void AttentionCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  Attention asked = asked_;
  for (Tensor* each : {&asked.query, &asked.key, &asked.value})
    *each = plain_operand(*each);
  if (asked.mask.defined()) {
    asked.mask = asked.mask.expand(
        {asked.batch(), asked.heads(), asked.queries(), asked.keys()});
  }
  Stream& stream = current_stream(asked.query.device().index());
  OpCost cost;
  add_cost(asked, &cost);
  const size_t position = choose_device(cost, stream, run);
  const PhysicalDevice& device = *stream.ordinal().devices[position];
  if (!is_capturing(stream) && attention_fits_panels(asked, is_backward(), device)) {
    by_panels(asked, stack);
    tier_ = Tier::native;
    return;
  }
  // For captures see Note [Capture].
  const bool products =
      !is_capturing(stream) && onednn_multiplies(device, asked.query.scalar_type());
  if (is_backward()) {
    backward(asked, position, products, stack);
  } else {
    forward(asked, position, products, stack);
  }
  tier_ = products ? Tier::onednn : Tier::sycl;
}

std::unique_ptr<RowKernel> AttentionSpec::make(const Overload& overload) const {
  AttentionRoles roles;
  for (const c10::Argument& argument : overload.schema().arguments()) {
    const int at = roles.count++;
    if (is_written(argument)) return nullptr;
    for (auto [known, role] : {std::pair("grad_out", &roles.grad),
                               {"query", &roles.query},
                               {"key", &roles.key},
                               {"value", &roles.value},
                               {"out", &roles.out},
                               {"logsumexp", &roles.sums},
                               {"dropout_p", &roles.dropout},
                               {"is_causal", &roles.causal},
                               {"attn_mask", &roles.mask},
                               {"scale", &roles.scale}}) {
      if (argument.name() == known) *role = at;
    }
  }
  return make_row<AttentionCall>(asked_prior(*this), *this, roles);
}

[[maybe_unused]] const bool knows_attention = register_kind<AttentionSpec>("attention");

}  // namespace
}  // namespace xpurt
