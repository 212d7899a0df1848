// Where the operands of one call are.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

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

  // The sets of devices are words with a bit per position. The devices that hold all
  // storages that are read.
  uint64_t holders() const;

 private:
  size_t devices_ = 0;
  bool may_leave_ = true;
  c10::SmallVector<size_t, 8> missing_;  // by read, then by position
};

}  // namespace xpurt
