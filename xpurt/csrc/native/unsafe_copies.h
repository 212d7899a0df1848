// Which ops may run on copies of their arguments, and what is checked when they do.
#pragma once

#include <c10/util/SmallVector.h>

#include "op/op_record.h"

namespace xpurt {

// Note [Ops on copies]
// ~~~~~~~~~~~~~~~~~~~~
// Where the host cannot read a device's memory, a native kernel runs on copies, and
// only what the schema marks as written is copied back. That is wrong, and nobody
// would see it, for an op that writes to something else, or that reads or writes after
// it returned. There are four kinds of ops:
//  - trusted: PyTorch's aten. Its schemas are audited, and the arguments that they
//    conceal are listed in op_record.cpp.
//  - refused: known to be unsafe (collectives), or not to be known: a type in the
//    schema, such as a ScriptObject, through which the op may keep a tensor.
//  - never: a tensor of theirs holds a pointer to an object of the host. Neither a copy
//    nor other labels can make that an xpu tensor, on any device.
//  - checked: all others, those of other libraries above all. They run, and an error
//    is raised afterwards if the bytes of an argument changed that the schema calls an
//    input, or if somebody still holds a copy, of an argument or of a result. The xpu
//    tensors are what they were then.
// What the check cannot see is an op that keeps a bare pointer to a tensor, and no
// reference: on any device that is a use of freed memory.
enum class CopyRule { trusted, checked, refused, never };

struct CopyVerdict {
  CopyRule rule;
  std::string reason;  // why not; for the message
  bool packs = false;  // into an object of PyTorch's that may keep what it packs
};
CopyVerdict copy_verdict(const c10::FunctionSchema& schema);

// FallbackError if the op may not run on host tensors of xpu:index. `copies`: some of
// them are copies.
void check_may_copy(const OpRecord& record, c10::DeviceIndex index, bool copies);

// For tests: ops that are trusted are checked, too.
void check_trusted_copies(bool value);

// The checks of one run of one op on copies.
class CopyAudit {
 public:
  CopyAudit(const OpRecord& record, c10::DeviceIndex index);

  // `original`, an argument, has become `host`.
  void record_argument(size_t position, const at::Tensor& original,
                       const at::Tensor& host);
  // The copies are complete, and the kernel is about to run.
  void kernel_begins();
  // The kernel ran, and nothing is copied back yet; `stack` ends with its results.
  void kernel_ended(const torch::jit::Stack& stack);
  // Nothing that belongs to the run holds a copy any more.
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
