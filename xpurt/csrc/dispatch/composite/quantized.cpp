// Quantized tensors: copies from and to them.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>
#include <torch/library.h>

#include "device/device_scope.h"
#include "native/host_call.h"

namespace xpurt {
namespace {

using at::Tensor;

// PyTorch's copy on host tensors of both sides. It quantizes a float source, and takes
// over the quantizer of a quantized one.
Tensor& copy_quantized_(Tensor& self, const Tensor& source, bool /*non_blocking*/) {
  const c10::DeviceIndex index = (self.is_xpu() ? self : source).device().index();
  const DeviceScope scope(index);
  HostCall call(index);
  if (call.copies()) {
    call.announce(self, false);
    call.announce(source, false);
  }
  Tensor to = call.to_other(self, true);
  const Tensor from = call.to_other(source, false);
  call.wait();
  {
    const at::AutoDispatchBelowADInplaceOrView as_a_kernel;
    to.copy_(from);
  }
  call.finish_arguments();
  if (self.is_quantized())
    at::set_quantizer_(self, at::get_qtensorimpl(to)->quantizer());
  return self;
}

TORCH_LIBRARY_IMPL(aten, QuantizedXPU, m) {
  m.impl("copy_", TORCH_FN(copy_quantized_));
}

}  // namespace
}  // namespace xpurt
