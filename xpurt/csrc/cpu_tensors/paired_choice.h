// Chooses between a row and PyTorch's CPU kernel by times of both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "schedule/planning/two_forms.h"

namespace xpurt {

// Note [Paired calls]
// ~~~~~~~~~~~~~~~~~~~
// PyTorch's kernel is the first form of a call of CPU tensors, and the row the second
// one: see Note [Two forms]. The price of the row is its preparation. A class is
// decided once, for the life of the process.
//
// A decision is read from a slot without a lock. The key of a class selects the slot;
// two classes with the same one overwrite each other's decision, and find it again in
// the table.

// The least times, in microseconds; 0: not measured.
struct PairedTimes {
  double stock_us = 0;
  double row_us = 0;
};

// The choices of one op. Thread-safe.
class PairedChoice {
 public:
  // The second form is the row. `build_us`: what its first call costs on top.
  FormTurn next(uint64_t key, double build_us);
  void record(uint64_t key, bool by_row, double us);
  // The row cannot compute calls of this class.
  void refuse(uint64_t key);
  PairedTimes times(uint64_t key);

 private:
  static constexpr size_t kQuick = 64;  // slots; a power of two
  static constexpr size_t kMostClasses = 4096;

  // A decision: the class's key, whose lowest bit is replaced by the choice.
  using Slot = std::atomic<uint64_t>;

  Slot& slot(uint64_t key) { return quick_[(key >> 1) & (kQuick - 1)]; }
  void keep_quick(uint64_t key, const TwoForms& forms);

  std::array<Slot, kQuick> quick_{};
  std::unordered_map<uint64_t, TwoForms>
      classes_;  // guarded by the mutex of all choices
};

}  // namespace xpurt
