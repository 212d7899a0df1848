// xpu tensors as CPU tensors for one call of an unboxed op, made with little overhead.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "memory/replica/host_writes.h"
#include "stream/uses.h"

namespace xpurt {

struct HostView;     // one view
struct ThreadViews;  // the views of a thread

// Note [Host views]
// ~~~~~~~~~~~~~~~~~
// HostCall makes a tensor and a storage for every operand of every call. If a call
// resizes nothing and the host reads the memory, HostViews reuses tensors that the
// calling thread keeps as views of the operands: an operand costs a few stores. A view
// does not own its memory; the caller of the op does. If the kernel kept a view, the
// view becomes an ordinary alias, and the thread makes another one.
class HostViews {
 public:
  // `index`: the ordinal of the operands, which is the current device.
  explicit HostViews(c10::DeviceIndex index);
  ~HostViews();
  HostViews(const HostViews&) = delete;
  HostViews& operator=(const HostViews&) = delete;

  // The view of a plain tensor of this ordinal. CPU tensors are returned unchanged.
  // Valid until the end of the call.
  at::Tensor& to_other(const at::Tensor& tensor, bool written);

  // Waits until the operands' bytes can be used on the host. Called between the last
  // to_other() and the kernel.
  void wait();

  void finish_arguments() {}

  // The xpu form of a tensor that the kernel returned: see HostCall.
  at::Tensor to_own(at::Tensor result);

 private:
  struct Operand {
    HostView* view;
    c10::TensorImpl* tensor;
    c10::StorageImpl* storage;
    bool shares;  // uses the storage of an earlier operand
  };

  const c10::DeviceIndex index_;
  ThreadViews& views_;
  const size_t first_;  // index of this call's first view among the thread's views
  c10::SmallVector<Operand, 6> operands_;
  Uses pending_;  // work that has to end before the host uses the operands
  HostWrites writes_;
};

}  // namespace xpurt
