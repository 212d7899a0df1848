// zero_, which also makes new tensors of zeros.
#include "dispatch/copy.h"
#include "dispatch/host_memcpy.h"
#include "dispatch/unboxed/unboxed_op.h"
#include "memory/allocator.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/EmptyTensor.h>
#include <ATen/ops/zero_ops.h>
#include <ATen/ops/zeros_like_native.h>

namespace xpurt {
namespace {

OpRecord& zero_record() {
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::zero_", ""));
  return record;
}

at::Tensor& zero_(c10::DispatchKeySet keys, at::Tensor& self) {
  if (host_memset(zero_record(), self)) return self;
  return UnboxedOp<at::_ops::zero_, void, at::_ops::zero_>::call(keys, self);
}

// Whether the request is for a tensor with the layout of `self`, a contiguous one.
bool is_for_alike(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                  std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                  std::optional<bool> pin_memory,
                  std::optional<c10::MemoryFormat> format) {
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  return impl.is_xpu() && impl.is_contiguous() && is_dense(self) &&
         dtype.value_or(self.scalar_type()) == self.scalar_type() &&
         layout.value_or(c10::kStrided) == c10::kStrided &&
         device.value_or(impl.device()) == impl.device() &&
         !pin_memory.value_or(false) &&
         format.value_or(c10::MemoryFormat::Preserve) == c10::MemoryFormat::Preserve;
}

// PyTorch computes zeros_like by two more calls through the dispatcher, which for a few
// elements cost more than the zeros. The call is counted as a call of zero_, as there.
at::Tensor zeros_like(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                      std::optional<c10::Layout> layout,
                      std::optional<c10::Device> device, std::optional<bool> pin_memory,
                      std::optional<c10::MemoryFormat> format) {
  if (!is_for_alike(self, dtype, layout, device, pin_memory, format)) {
    return at::native::zeros_like(self, dtype, layout, device, pin_memory, format);
  }
  const DeviceScope scope(self.device().index());
  at::Tensor made = at::detail::empty_strided_generic(
      self.sizes(), self.strides(), &device_allocator(),
      c10::DispatchKeySet(c10::DispatchKey::XPU), self.scalar_type());
  if (!host_memset(zero_record(), made)) made.zero_();
  return made;
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("zero_", TORCH_FN(zero_));
  m.impl("zeros_like", TORCH_FN(zeros_like));
  unboxed_ops().emplace_back("aten::zero_");
}

}  // namespace
}  // namespace xpurt
