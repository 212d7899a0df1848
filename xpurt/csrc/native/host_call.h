// Converts xpu tensors to CPU tensors for a native kernel, and back.
#pragma once

#include "memory/replica/host_writes.h"
#include "native/exchanged_call.h"
#include "stream/uses.h"

namespace xpurt {

// Note [Host tensors]
// ~~~~~~~~~~~~~~~~~~~
// A native kernel runs on host tensors. If the host can read the device's memory, a
// host tensor is an alias: a CPU tensor over the same bytes, which keeps the storage of
// the xpu tensor alive. Otherwise it is staged: the bytes are copied to the host before
// the kernel, and written bytes are copied back after it. See Note [Exchanged calls].
class HostCall final : public ExchangedCall {
 public:
  // `index`: the ordinal of the results. `may_block`: see HostWrites.
  explicit HostCall(c10::DeviceIndex index, bool may_block = false);

  // Whether some argument, or a result, has to be copied.
  bool copies() const { return copies_; }

  // Announces an argument before the first to_other(). A staged storage is copied once:
  // the range of the announced arguments, or all of it if `whole`, since the kernel may
  // resize it. Needed only if copies().
  void announce(const at::Tensor& tensor, bool whole);

  // Waits until the arguments' bytes can be used on the host. Called between the last
  // to_other() and the kernel.
  void wait();

 private:
  bool prepare(c10::StorageImpl& own, const c10::TensorImpl* tensor,
               bool written) override;
  void make_other(ExchangedStorage& storage) override;
  void write_back(ExchangedStorage& storage) override;  // staging.cpp
  c10::Storage adopt(const c10::Storage& host) override;

  bool reads(c10::DeviceIndex index) const;
  void stage(ExchangedStorage& storage);             // staging.cpp
  c10::Storage upload(const c10::Storage& storage);  // staging.cpp

  const bool reads_;  // whether the host reads the memory of the results' device
  bool copies_;
  Uses pending_;  // work that has to end before the host uses the arguments
  HostWrites writes_;
};

}  // namespace xpurt
