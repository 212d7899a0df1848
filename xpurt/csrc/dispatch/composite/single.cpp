// Single ops that belong to no group.
#include <ATen/ops/from_file.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/pad_sequence_native.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <algorithm>

#include "dispatch/complex_nansum.h"
#include "host/torch_version.h"
#include "memory/allocator.h"
#include "op/op_record.h"
#include "op/operands.h"

namespace xpurt {
namespace {

using at::Tensor;

void record_stream(Tensor& self, c10::Stream stream) {
  device_allocator().recordStream(self.storage().data_ptr(), stream);
}

Tensor to_mkldnn(const Tensor&, std::optional<c10::ScalarType>) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "xpu tensors have no mkldnn layout. Move the tensor to the CPU first: "
      "tensor.cpu().to_mkldnn()");
}

// PyTorch's kernels for sparse and nested CPU tensors pin the parts, and do not check
// the device.
Tensor refuse_to_pin(const Tensor& self, std::optional<c10::Device>) {
  TORCH_CHECK(false, "cannot pin '", self.toString(),
              "': only CPU tensors can be pinned, not xpu tensors. Pin it on the CPU, "
              "and move it with .to(\"xpu\").");
}

bool is_never_pinned(const Tensor&, std::optional<c10::Device>) {
  return false;
}

// A file's bytes are mapped into the host's memory, so an xpu tensor is a copy.
Tensor from_file(std::string_view name, std::optional<bool> shared,
                 std::optional<int64_t> size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(!shared.value_or(false),
                              "from_file(shared=True) on xpu: what is written to the "
                              "tensor would not reach the "
                              "file. Use shared=False, or device=\"cpu\".");
  return at::from_file(name, shared, size, dtype, layout, c10::Device(c10::kCPU),
                       pin_memory)
      .to(device.value_or(c10::Device(c10::kXPU)));
}

// For composite ops that choose a kernel by the device themselves, without a case for
// xpu.
void by_host_tensors(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  op.redispatchBoxed(keys, stack);
}

template <bool has_out>
void nansum(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
            torch::jit::Stack* stack) {
  constexpr size_t kArguments = has_out ? 5 : 4;
  const auto a = torch::jit::last(*stack, kArguments);
  if (!a[0].toTensor().is_complex()) return op.redispatchBoxed(keys, stack);
  std::optional<c10::ScalarType> dtype;
  if (!a[3].isNone()) dtype = a[3].toScalarType();
  const auto dims = a[1].toOptional<std::vector<int64_t>>();
  Tensor result = complex_nansum(a[0].toTensor(),
                                 dims ? at::OptionalIntArrayRef(*dims) : std::nullopt,
                                 a[2].toBool(), dtype);
  if constexpr (has_out) {
    Tensor out = a[4].toTensor();
    TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ",
                result.scalar_type(), " can't be cast to the desired output type ",
                out.scalar_type());
    at::native::resize_output(out, result.sizes());
    result = out.copy_(result);
  }
  torch::jit::drop(*stack, kArguments);
  torch::jit::push(*stack, std::move(result));
}

// For ops whose CPU kernel in PyTorch reads an expanded input out of bounds.
void of_contiguous(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  c10::IValue& self = torch::jit::peek(*stack, 0, op.schema().arguments().size());
  self = self.toTensor().contiguous();
  op.redispatchBoxed(keys, stack);
}

// For ops whose CPU kernel in PyTorch writes to a result as if it were contiguous.
void into_contiguous(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  c10::IValue& last = stack->back();
  const Tensor out = last.toTensor();
  const Tensor& self =
      torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  if (out.is_contiguous() || out.sizes() != self.sizes() ||
      at::has_internal_overlap(out) == at::MemOverlap::Yes) {
    return op.redispatchBoxed(keys, stack);
  }
  last = at::empty_like(out, at::MemoryFormat::Contiguous);
  op.redispatchBoxed(keys, stack);
  stack->back() = out.copy_(stack->back().toTensor());
}

// PyTorch's CPU kernels of fused optimizers go through a parameter, its gradient and
// its state in the order of memory, and do not compare their strides. If those differ,
// the kernel gets contiguous copies. The parameter and its state are then copied back,
// and so is the gradient, which the kernel unscales.
void of_one_layout(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  std::vector<std::pair<size_t, std::vector<Tensor>>> lists;  // by position
  for (size_t at = 0; at < arguments; ++at) {
    const c10::IValue& value = torch::jit::peek(*stack, at, arguments);
    if (value.isTensorList()) lists.emplace_back(at, value.toTensorVector());
  }
  const std::vector<Tensor> parameters = lists.front().second;
  std::vector<std::pair<Tensor, Tensor>> copies;  // originals, and what replaces them
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    const auto belongs = [&](const std::vector<Tensor>& list) {
      return i < list.size() && list[i].sizes() == parameter.sizes();
    };
    const bool alike = std::ranges::all_of(lists, [&](const auto& list) {
      return !belongs(list.second) || list.second[i].strides() == parameter.strides();
    });
    if (alike && parameter.is_non_overlapping_and_dense()) continue;
    for (auto& [at, list] : lists) {
      if (!belongs(list) || list[i].is_contiguous()) continue;
      copies.emplace_back(list[i], list[i].contiguous());
      list[i] = copies.back().second;
    }
  }
  for (auto& [at, list] : lists) torch::jit::peek(*stack, at, arguments) = list;
  op.redispatchBoxed(keys, stack);
  for (auto& [original, copy] : copies) original.copy_(copy);
}

const bool singles_registered = set_host_kernels({
    {"aten::_softmax", "out", &into_contiguous},
    {"aten::_log_softmax", "out", &into_contiguous},
    {"aten::_softmax_backward_data", "out", &into_contiguous},
    {"aten::_log_softmax_backward_data", "out", &into_contiguous},
    {"aten::conj_physical_", "", &by_host_tensors},
    {"aten::_fused_adagrad_", "", &of_one_layout},
    {"aten::_fused_adagrad_", "tensor_lr", &of_one_layout},
    {"aten::_fused_adam_", "", &of_one_layout},
    {"aten::_fused_adam_", "tensor_lr", &of_one_layout},
    {"aten::_fused_adamw_", "", &of_one_layout},
    {"aten::_fused_adamw_", "tensor_lr", &of_one_layout},
    {"aten::_fused_sgd_", "", &of_one_layout},
    {"aten::_fused_sgd_", "tensor_lr", &of_one_layout},
    {"aten::kaiser_window", "", &by_host_tensors},
    {"aten::ldexp", "Tensor", &by_host_tensors},
    {"aten::ldexp", "out", &by_host_tensors},
    {"aten::ldexp_", "", &by_host_tensors},
    {"aten::kaiser_window", "periodic", &by_host_tensors},
    {"aten::kaiser_window", "beta", &by_host_tensors},
    {"aten::median", "dim_values", &of_contiguous},
    {"aten::nanmedian", "dim_values", &of_contiguous},
    {"aten::mode", "values", &by_host_tensors},
    {"aten::nansum", "", &nansum<false>},
    {"aten::nansum", "out", &nansum<true>},
});

#if XPURT_TORCH_AT_LEAST(2, 14)
// Since 2.14 PyTorch's function lets the kernels of xpu convert halves to float, as
// those of CUDA do. The CPU's kernels refuse that. So the operand is converted first,
// as on the CPU.
template <auto& of_converted>
Tensor convert_and_run(const Tensor& self, int64_t dim,
                       std::optional<c10::ScalarType> dtype) {
  return of_converted(dtype.has_value() ? self.to(*dtype) : self, dim, false);
}

void convert_halves(torch::Library& m) {
  m.impl("softmax.int", TORCH_FN((convert_and_run<at::_softmax>)));
  m.impl("log_softmax.int", TORCH_FN((convert_and_run<at::_log_softmax>)));
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  convert_halves(m);
}
TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  convert_halves(m);
}
#endif

// PyTorch's function copies each sequence, which does not check the device.
Tensor pad_sequence(at::TensorList sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  for (const Tensor& each : sequences) {
    check_same_device("aten::pad_sequence", sequences[0], each, "sequences");
  }
  return at::native::pad_sequence(sequences, batch_first, padding_value, padding_side);
}

TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("pad_sequence", TORCH_FN(pad_sequence));
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("pad_sequence", TORCH_FN(pad_sequence));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("to_mkldnn", TORCH_FN(to_mkldnn));
  m.impl("from_file", TORCH_FN(from_file));
}

void refuse_pinning(torch::Library& m) {
  m.impl("_pin_memory", TORCH_FN(refuse_to_pin));
  m.impl("is_pinned", TORCH_FN(is_never_pinned));
}
TORCH_LIBRARY_IMPL(aten, SparseXPU, m) {
  refuse_pinning(m);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrXPU, m) {
  refuse_pinning(m);
}
TORCH_LIBRARY_IMPL(aten, NestedTensorXPU, m) {
  refuse_pinning(m);
}

}  // namespace

Tensor complex_nansum(const Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                      std::optional<c10::ScalarType> dtype) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::sum(at::where(at::isnan(self), 0, self), dims, keepdim, dtype);
}

}  // namespace xpurt
