// Single ops that fit nowhere else.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "allocator.h"
#include "complex_nansum.h"
#include "op_record.h"

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

// Composite ops that choose a kernel by the device themselves, and know of no xpu.
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

const bool singles_registered = set_host_kernels({
    {"aten::conj_physical_", "", &by_host_tensors},
    {"aten::mode", "values", &by_host_tensors},
    {"aten::nansum", "", &nansum<false>},
    {"aten::nansum", "out", &nansum<true>},
});

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("to_mkldnn", TORCH_FN(to_mkldnn));
}

}  // namespace

Tensor complex_nansum(const Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                      std::optional<c10::ScalarType> dtype) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::sum(at::where(at::isnan(self), 0, self), dims, keepdim, dtype);
}

}  // namespace xpurt
