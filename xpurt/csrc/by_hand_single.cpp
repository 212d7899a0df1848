// Single ops that fit nowhere else.
#include <torch/library.h>

#include "allocator.h"
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

const bool singles_registered = set_host_kernels({
    {"aten::conj_physical_", "", &by_host_tensors},
    {"aten::mode", "values", &by_host_tensors},
});

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("to_mkldnn", TORCH_FN(to_mkldnn));
}

}  // namespace
}  // namespace xpurt
