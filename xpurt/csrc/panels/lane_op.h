// Ops by the kernels of lanes/, on the CPU and on xpu.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "dispatch/dispatch.h"
#include "lanes/kernels.h"
#include "native/alias.h"

namespace xpurt {

// An op, and the function to use where it can't be called.
struct LaneOp {
  // For the processor, or raises.
  const Kernels& kernels() const {
    const Kernels* const found = lane_kernels();
    TORCH_CHECK_NOT_IMPLEMENTED(found != nullptr, name,
                                " wants a processor with AVX2 or AVX-512, which this "
                                "one has not. Use ",
                                instead);
    return *found;
  }

  void check_type(const char* what, const at::Tensor& tensor,
                  at::ScalarType type = at::kFloat) const {
    const bool narrow = type == at::kBFloat16;
    TORCH_CHECK_TYPE(tensor.scalar_type() == type, name, " wants ", what, " in ",
                     narrow ? "bfloat16" : "float32", "; found ", tensor.scalar_type(),
                     ". Convert it by ", narrow ? ".bfloat16()" : ".float()");
  }

  void check(const char* what, const at::Tensor& tensor, at::IntArrayRef sizes,
             at::ScalarType type = at::kFloat) const {
    check_type(what, tensor, type);
    TORCH_CHECK_VALUE(tensor.sizes() == sizes, name, " wants ", what, " of shape ",
                      sizes, "; found ", tensor.sizes());
  }

  // Found once by each op: it is looked up by its name.
  c10::OperatorHandle handle() const {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  }

  // Calls the kernel for the CPU on the same bytes, a native tier like that of
  // PyTorch's ops.
  void call_on_host(const c10::OperatorHandle& op, at::Device device,
                    torch::jit::Stack* stack) const {
    TORCH_CHECK_NOT_IMPLEMENTED(
        host_reads(device.index()), name,
        " wants an xpu device whose memory the host reads; found ", device, ". Use ",
        instead);
    run_op(op_record(op), c10::DispatchKeySet(c10::DispatchKey::XPU), stack);
  }

  const char* name;
  const char* instead;
};

}  // namespace xpurt
