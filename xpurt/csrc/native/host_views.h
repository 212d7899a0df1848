// xpu tensors as CPU tensors for one call of an unboxed op: quick to make.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "stream/uses.h"

namespace xpurt {

struct HostView;     // one of them
struct ThreadViews;  // those of a thread

// Note [Host views]
// ~~~~~~~~~~~~~~~~~
// HostCall makes a tensor and a storage for every operand of every call. For a call
// that resizes nothing, on memory that the host reads, HostViews shows the operands
// through tensors that the calling thread keeps for that: an operand costs a few
// stores. A view does not own the memory it shows, as the caller of the op does. If
// the kernel kept a view, it becomes an ordinary alias, and the thread makes another.
class HostViews {
 public:
  // `index` is the ordinal of the operands, the current device.
  explicit HostViews(c10::DeviceIndex index);
  ~HostViews();
  HostViews(const HostViews&) = delete;
  HostViews& operator=(const HostViews&) = delete;

  // The view of a tensor: a plain one of this ordinal. Others stay what they are. Valid
  // until the end of the call.
  at::Tensor& to_host(const at::Tensor& tensor, bool written);

  // Waits until the operands' bytes can be used on the host. Between the last
  // to_host and the kernel.
  void wait();

  void finish_arguments() {}

  // The xpu form of what the kernel returned: see HostCall.
  at::Tensor to_xpu(at::Tensor result);

 private:
  struct Operand {
    HostView* view;
    c10::TensorImpl* tensor;
    c10::StorageImpl* storage;
    bool shares;  // the storage of an operand before it
  };

  const c10::DeviceIndex index_;
  ThreadViews& views_;
  const size_t first_;  // of the thread's views that are this call's
  c10::SmallVector<Operand, 6> operands_;
  Uses pending_;  // that the operands are left to
};

}  // namespace xpurt
