// Chooses between a row and PyTorch's CPU kernel by times of both.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace xpurt {

// Note [Paired calls]
// ~~~~~~~~~~~~~~~~~~~
// A round is four calls: two by PyTorch's kernel and two by the row. The second call of
// each is timed; the first one builds kernels and fills caches. So both are timed under
// the same load of the machine. Noise makes a time longer, never shorter, so the least
// time of three rounds counts. The row is chosen if it takes less than 0.95 of the
// time. This is the scheme of compiled graphs: see Note [Paired rounds] in
// xpurt/compiler/paired_rounds.py.
//
// The first round begins once the calls of a class have taken as long as the row's
// preparation is expected to take. That is the rule of ski rental (Karlin, Manasse,
// Rudolph and Sleator, 1988): a short program builds no kernel that does not pay.
//
// A class is chosen for once, for the life of the process.

// How one call runs.
struct CallTurn {
  bool by_row = false;
  bool timed = false;  // the time is wanted by PairedChoice::record()
};

// The least times, in microseconds; 0: not measured.
struct PairedTimes {
  double stock_us = 0;
  double row_us = 0;
};

// The choices of one op. Thread-safe.
class PairedChoice {
 public:
  // `build_us`: what the row's first call costs on top.
  CallTurn next(uint64_t key, double build_us);
  void record(uint64_t key, bool by_row, double us);
  // The row cannot compute calls of this class.
  void refuse(uint64_t key);
  PairedTimes times(uint64_t key);

 private:
  static constexpr int kRounds = 3;
  static constexpr size_t kQuick = 64;  // slots; a power of two
  static constexpr size_t kMostClasses = 4096;

  struct Class {
    double spent_us = 0;
    uint64_t turn = 0;  // of the rounds; 0: they have not begun
    int stock_times = 0;
    int row_times = 0;
    PairedTimes least;
    bool is_decided = false;
    bool by_row = false;
  };
  // A decision: the class's key, whose lowest bit is replaced by the choice.
  using Slot = std::atomic<uint64_t>;

  void decide(uint64_t key, Class& each, bool by_row);
  Slot& slot(uint64_t key) { return quick_[(key >> 1) & (kQuick - 1)]; }

  std::array<Slot, kQuick> quick_{};
  std::unordered_map<uint64_t, Class> classes_;  // guarded by the mutex of all choices
};

}  // namespace xpurt
