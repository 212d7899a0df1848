#include "dispatch/host_memcpy.h"

#include <cstring>

#include "dispatch/copy.h"
#include "dispatch/row_choice.h"
#include "dispatch/unboxed/unboxed_run.h"
#include "memory/replica/host_writes.h"
#include "memory/replica/replica.h"

namespace xpurt {
namespace {

// From this size on PyTorch's kernels use more than one thread.
constexpr size_t kHostMemcpyBytes = 64 * 1024;

void bring_home(const at::Tensor& tensor, Access access, Uses* pending) {
  xpurt::bring_home(
      *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(), access,
      pending);
}

// Returns the address to write to after `pending`.
void* begin_write(const at::Tensor& tensor, HostWrites* writes, Uses* pending) {
  void* to = tensor.mutable_data_ptr();
  writes->begin(*tensor.unsafeGetTensorImpl());
  bring_home(tensor, Access::read_write, pending);
  return to;
}

bool is_host_memcpy_size(const at::Tensor& tensor) {
  return tensor.is_xpu() && tensor.numel() * tensor.element_size() <= kHostMemcpyBytes;
}

// Has to be the last check: it counts the call.
bool is_native(const OpRecord& record, const at::Tensor& tensor) {
  CallSignature signature;
  signature.record(*tensor.unsafeGetTensorImpl());
  return goes_native(record, tensor.device().index(), signature);
}

}  // namespace

bool host_memcpy(OpRecord& record, const at::Tensor& self, const at::Tensor& source) {
  if (!is_host_memcpy_size(self) || source.device() != self.device() ||
      !same_dense_layout(self, source) || self.is_alias_of(source) ||
      !is_native(record, self)) {
    return false;
  }
  const c10::DeviceIndex index = self.device().index();
  const UnboxedRun run(record, index, ordinal(index));
  Uses pending;
  HostWrites writes;
  void* to = begin_write(self, &writes, &pending);
  bring_home(source, Access::read, &pending);
  run.stream().wait_for(pending);
  // An empty tensor may have no address, which the function does not accept.
  if (self.nbytes() != 0) std::memcpy(to, source.const_data_ptr(), self.nbytes());
  run.done();
  return true;
}

bool host_memset(OpRecord& record, const at::Tensor& self) {
  if (!self.defined() || !is_host_memcpy_size(self) || !is_dense(self) ||
      !is_native(record, self)) {
    return false;
  }
  const c10::DeviceIndex index = self.device().index();
  const UnboxedRun run(record, index, ordinal(index));
  Uses pending;
  HostWrites writes;
  void* to = begin_write(self, &writes, &pending);
  run.stream().wait_for(pending);
  if (self.nbytes() != 0) std::memset(to, 0, self.nbytes());
  run.done();
  return true;
}

}  // namespace xpurt
