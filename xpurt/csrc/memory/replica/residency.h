// Where the operands of one call are.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <vector>

#include "device/device.h"

namespace xpurt {

// Note [Residency]
// ~~~~~~~~~~~~~~~~
// A decision compares the devices of an ordinal, so it needs the bytes of each operand
// that are missing on each device. The table of replicas is read once, under one lock,
// before the decision begins. The decision has a lock of its own, and another thread
// may hold the table's lock while it submits work and its copies. So the one is not
// held during the other: see Note [Order of locks]. What another thread moves meanwhile
// makes the prediction worse, and not the result: the operands are resolved anew when
// the work is submitted.
class Residency {
 public:
  Residency() = default;
  Residency(c10::ArrayRef<const c10::StorageImpl*> reads,
            c10::ArrayRef<const c10::StorageImpl*> writes, const Ordinal& devices);

  // False if a storage has to stay at home: its bytes escaped, by this storage or by
  // another one, or its memory is not from xpurt's allocator.
  bool may_leave() const { return may_leave_; }

  // The bytes of a storage that is read that would have to be copied to the device at
  // `position`.
  size_t bytes_missing(size_t read, size_t position) const {
    return missing_[read * devices_ + position];
  }

  // Whether a device is short of memory for a storage that is read.
  bool is_short_of_memory() const { return !streamed_.empty(); }

  // Whether a storage that is read would stay on the device at `position` after such a
  // copy. If not, each call has to copy it anew. See Note [Values of copies].
  bool stays(size_t read, size_t position) const {
    return streamed_.empty() || !streamed_[read * devices_ + position];
  }

  // The sets of devices are words with a bit per position. The devices that hold all
  // storages that are read.
  uint64_t holders() const;

 private:
  size_t devices_ = 0;
  bool may_leave_ = true;
  c10::SmallVector<size_t, 8> missing_;  // by read, then by position
  std::vector<bool> streamed_;  // the same; empty if no device is short of memory
};

// Records what an op saves by having its operands on the device at `position`, over the
// time of copying them there.
void record_saved(c10::ArrayRef<const c10::StorageImpl*> reads, size_t position,
                  double saved);

}  // namespace xpurt
