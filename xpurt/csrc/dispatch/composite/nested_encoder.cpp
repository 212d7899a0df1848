// Nested tensors in encoders, on a device whose memory the host can't read.
//
// Note [Nested encoders]
// ~~~~~~~~~~~~~~~~~~~~~~
// nn.TransformerEncoder makes a nested tensor of a batch with a padding mask, calls one
// op per layer, and pads the result. PyTorch's kernels for these ops would run on
// copies. Here the rows of all sequences are moved between the nested tensor's buffer
// and a padded tensor by an index, and the layer is computed on the padded tensor, with
// a mask. Other nested tensors than those of sequences are left to PyTorch's kernels.
#include <ATen/NestedTensorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/library.h>

#include <algorithm>

#include "device/device_scope.h"
#include "dispatch/dispatch.h"
#include "dispatch/special_layouts.h"
#include "native/alias.h"
#include "op/row_kernel.h"

namespace xpurt {
namespace {

using at::Tensor;
using at::native::NestedTensorImpl;
using c10::OperatorHandle;
using torch::jit::Stack;

bool computes_here(const Tensor& tensor) {
  const KernelPolicy policy = kernel_policy();
  if (!tensor.is_xpu() || policy == KernelPolicy::native) return false;
  return policy == KernelPolicy::sycl || !host_computes(tensor.device().index());
}

// Sequences of rows of one width, one after the other in memory.
struct Sequences {
  std::vector<int64_t> lengths;
  int64_t width = 0;

  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t longest() const { return *std::ranges::max_element(lengths); }

  // The number of each row in a padded tensor.
  Tensor places(c10::Device device) const {
    std::vector<int64_t> numbers;
    for (int64_t b = 0; b < count(); ++b) {
      for (int64_t t = 0; t < lengths[b]; ++t) numbers.push_back(b * longest() + t);
    }
    const Tensor on_host = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
    std::ranges::copy(numbers, on_host.mutable_data_ptr<int64_t>());
    return on_host.to(device);
  }

  Tensor padded(const Tensor& rows, double padding) const {
    Tensor whole = at::full({count() * longest(), width}, padding, rows.options());
    whole.index_copy_(0, places(rows.device()), rows.view({-1, width}));
    return whole.view({count(), longest(), width});
  }

  // The nested tensor of these rows of a padded tensor.
  Tensor nested(const Tensor& padded) const {
    const Tensor sizes = at::empty({count(), 2}, at::kLong);
    auto* size = sizes.mutable_data_ptr<int64_t>();
    for (const int64_t length : lengths) {
      *size++ = length;
      *size++ = width;
    }
    const Tensor rows =
        padded.reshape({-1, width}).index_select(0, places(padded.device()));
    return at::detail::make_tensor<NestedTensorImpl>(rows.view({-1}), sizes);
  }
};

std::optional<Sequences> sequences_of(const Tensor& nested) {
  const NestedTensorImpl* impl = at::native::get_nested_tensor_impl(nested);
  const Tensor& sizes = impl->get_nested_sizes();
  if (impl->dim() != 3 || sizes.size(0) == 0 ||
      !at::native::nested_tensor_impl_is_contiguous(impl)) {
    return std::nullopt;
  }
  const auto* size = sizes.const_data_ptr<int64_t>();
  Sequences found;
  found.width = size[1];
  for (int64_t b = 0; b < sizes.size(0); ++b) {
    if (size[2 * b + 1] != found.width) return std::nullopt;
    found.lengths.push_back(size[2 * b]);
  }
  if (found.width == 0 || found.longest() == 0) return std::nullopt;
  return found;
}

const c10::IValue& argument(const OperatorHandle& op, const Stack& stack, size_t at) {
  return stack[stack.size() - op.schema().arguments().size() + at];
}

void finish(const OperatorHandle& op, Stack* stack, c10::IValue result) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  torch::jit::push(*stack, std::move(result));
}

// Each of these functions returns false for a call that is left to PyTorch's kernel.

bool pad(const OperatorHandle& op, Stack* stack) {
  const Tensor nested = argument(op, *stack, 0).toTensor();
  const c10::IValue& asked = argument(op, *stack, 2);
  if (!computes_here(nested)) return false;
  const auto sequences = sequences_of(nested);
  if (!sequences.has_value()) return false;
  const Tensor rows = at::native::get_nested_tensor_impl(nested)->get_buffer();
  std::vector<int64_t> sizes{sequences->count(), sequences->longest(),
                             sequences->width};
  const std::vector<int64_t> wanted = asked.isNone() ? sizes : asked.toIntVector();
  if (wanted.size() != 3) return false;
  for (size_t d = 0; d < 3; ++d) {
    if (wanted[d] < sizes[d]) return false;
  }
  const double padding = argument(op, *stack, 1).toDouble();
  Tensor result = sequences->padded(rows, padding);
  if (wanted != sizes) {
    const Tensor larger = at::full(wanted, padding, rows.options());
    larger.slice(0, 0, sizes[0])
        .slice(1, 0, sizes[1])
        .slice(2, 0, sizes[2])
        .copy_(result);
    result = larger;
  }
  finish(op, stack, result);
  return true;
}

// The layer of a padded tensor, which has a row. The last two arguments are the mask
// and its kind; 1 is a mask of keys.
bool encode(const OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const Tensor nested = argument(op, *stack, 0).toTensor();
  if (!nested.is_nested() || !computes_here(nested) ||
      !argument(op, *stack, count - 2).isNone()) {
    return false;
  }
  const auto sequences = sequences_of(nested);
  if (!sequences.has_value()) return false;
  const Tensor rows = at::native::get_nested_tensor_impl(nested)->get_buffer();
  Stack padded(stack->end() - static_cast<int64_t>(count), stack->end());
  padded.front() = sequences->padded(rows, 0);
  const Tensor mask = at::ones({sequences->count() * sequences->longest()},
                               rows.options().dtype(at::kBool));
  mask.index_fill_(0, sequences->places(rows.device()), 0);
  padded[count - 2] = mask.view({sequences->count(), sequences->longest()});
  padded[count - 1] = int64_t{1};
  op.callBoxed(padded);
  finish(op, stack, sequences->nested(padded.back().toTensor()));
  return true;
}

// Whether the ones of each row of a mask are at its beginning. `lengths`: their
// numbers.
bool is_left_aligned(const Tensor& mask, const Tensor& lengths) {
  const Tensor positions = at::arange(mask.size(1), lengths.options());
  return at::equal(mask, positions.lt(lengths.unsqueeze(1)));
}

bool fits(const Tensor& t, const Tensor& mask) {
  return computes_here(t) && mask.device() == t.device() && t.dim() == 3 &&
         mask.dim() == 2 && mask.scalar_type() == at::kBool && t.numel() > 0 &&
         mask.size(0) == t.size(0) && mask.size(1) == t.size(1);
}

bool check_mask(const OperatorHandle& op, Stack* stack) {
  const Tensor t = argument(op, *stack, 0).toTensor();
  const Tensor mask = argument(op, *stack, 1).toTensor();
  if (!fits(t, mask)) return false;
  finish(op, stack, is_left_aligned(mask, mask.sum(1)));
  return true;
}

bool nest(const OperatorHandle& op, Stack* stack) {
  const Tensor t = argument(op, *stack, 0).toTensor();
  const Tensor mask = argument(op, *stack, 1).toTensor();
  if (!fits(t, mask)) return false;
  const Tensor lengths = mask.sum(1);
  if (argument(op, *stack, 2).toBool() && !is_left_aligned(mask, lengths)) return false;
  const Tensor on_host = lengths.cpu();
  const auto* first = on_host.const_data_ptr<int64_t>();
  const Sequences sequences{{first, first + on_host.numel()}, t.size(2)};
  if (sequences.longest() == 0) return false;
  finish(op, stack, sequences.nested(t.slice(1, 0, sequences.longest())));
  return true;
}

template <bool (&compute)(const OperatorHandle&, Stack*)>
void run_nested(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  if (!compute(op, stack)) run_special_op(op_record(op), keys, stack);
}

template <bool (&compute)(const OperatorHandle&, Stack*)>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&run_nested<compute>>();
}

TORCH_LIBRARY_IMPL(aten, NestedTensorXPU, m) {
  m.impl("to_padded_tensor", boxed<pad>());
  m.impl("_transformer_encoder_layer_fwd", boxed<encode>());
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("_nested_tensor_from_mask", boxed<nest>());
  m.impl("_nested_tensor_from_mask_left_aligned", boxed<check_mask>());
}

}  // namespace
}  // namespace xpurt
