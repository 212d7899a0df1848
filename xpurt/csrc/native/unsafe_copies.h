// Which ops may run on copies of their arguments, and the checks of such runs.
#pragma once

#include <c10/util/SmallVector.h>

#include "op/op_record.h"

namespace xpurt {

// Note [Ops on copies]
// ~~~~~~~~~~~~~~~~~~~~
// If the host cannot read a device's memory, a native kernel runs on copies, and only
// the arguments that the schema marks as written are copied back. The result is
// silently wrong if the op writes to other arguments, or reads or writes after it
// returned. There are four kinds of ops:
//  - trusted: PyTorch's aten. Its schemas are audited; written arguments that they do
//    not mark are listed in op_record.cpp.
//  - refused: known to be unsafe (collectives), or unknown: the schema has a type, such
//    as a ScriptObject, through which the op may keep a tensor.
//  - never: one of the op's tensors holds a pointer to an object of the host. Neither a
//    copy nor relabeling can make it an xpu tensor, on any device.
//  - checked: all others, above all those of other libraries. They run. An error is
//    raised afterwards if the bytes of an argument changed that the schema declares an
//    input, or if a copy of an argument or of a result is still referenced. In the
//    first case nothing was copied back yet: the xpu tensors are unchanged.
// The check does not detect an op that keeps a bare pointer to a tensor without a
// reference: on any device that is a use of freed memory.
enum class CopyRule { trusted, checked, refused, never };

struct CopyVerdict {
  CopyRule rule;
  std::string reason;  // of a refusal; for the message
  bool packs = false;  // packs tensors into an object of PyTorch that may keep them
};
CopyVerdict copy_verdict(const c10::FunctionSchema& schema);

// Raises FallbackError if the op may not run on host tensors of xpu:index. `copies`:
// whether some of them are copies.
void check_may_copy(const OpRecord& record, c10::DeviceIndex index, bool copies);

// For tests: whether trusted ops are checked, too.
void check_trusted_copies(bool value);

// The checks of one run of one op on copies.
class CopyAudit {
 public:
  CopyAudit(const OpRecord& record, c10::DeviceIndex index);

  // Records that the argument `original` has the host form `host`.
  void record_argument(size_t position, const at::Tensor& original,
                       const at::Tensor& host);
  // Called when the copies are complete, before the kernel runs.
  void kernel_begins();
  // Called after the kernel, before anything is copied back; `stack` ends with the
  // results. Raises FallbackError if the kernel wrote to an input.
  void kernel_ended(const torch::jit::Stack& stack);
  // Called when the run itself holds no copy any more. Raises FallbackError if a copy
  // is still referenced.
  void run_ended() const;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Copied {
    Weak storage;
    int position;  // of the argument; -1 for a result
    bool may_be_kept;
    bool written;
    uint64_t sum = 0;
  };

  void record_storage(const c10::Storage& storage, int position, bool may_be_kept,
                      bool written);
  const Copied* kept() const;
  std::string describe(const Copied& copied) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const OpRecord& record_;
  c10::DeviceIndex index_;
  bool checks_;
  bool packs_ = false;
  c10::SmallVector<Copied, 8> copied_;
};

}  // namespace xpurt
