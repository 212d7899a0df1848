// Single ops that fit nowhere else.
#include <ATen/ops/from_file.h>
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

// PyTorch's kernels for the CPU's layouts pin the parts, and ask nothing of the device.
Tensor refuse_to_pin(const Tensor& self, std::optional<c10::Device>) {
  TORCH_CHECK(false, "cannot pin '", self.toString(),
              "': only CPU tensors can be pinned, not xpu tensors. Pin it on the CPU, "
              "and move it with .to(\"xpu\").");
}

bool is_pinned(const Tensor&, std::optional<c10::Device>) {
  return false;
}

// A file's bytes are mapped into memory of the host, so an xpu tensor is a copy.
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

// Composite ops that choose a kernel by the device themselves, and know of no xpu.
void by_host_tensors(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  op.redispatchBoxed(keys, stack);
}

const bool singles_registered = set_host_kernels({
    {"aten::conj_physical_", "", &by_host_tensors},
    {"aten::kaiser_window", "", &by_host_tensors},
    {"aten::kaiser_window", "periodic", &by_host_tensors},
    {"aten::kaiser_window", "beta", &by_host_tensors},
    {"aten::mode", "values", &by_host_tensors},
});

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("to_mkldnn", TORCH_FN(to_mkldnn));
  m.impl("from_file", TORCH_FN(from_file));
}

void refuse_pinning(torch::Library& m) {
  m.impl("_pin_memory", TORCH_FN(refuse_to_pin));
  m.impl("is_pinned", TORCH_FN(is_pinned));
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
}  // namespace xpurt
