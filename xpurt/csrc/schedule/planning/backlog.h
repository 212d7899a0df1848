// Predicts when the queues of one stream are free, and when the results of its kernels
// are ready. Uses no device. Times are microseconds of one clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xpurt {

// Note [Predicted clocks]
// ~~~~~~~~~~~~~~~~~~~~~~~
// A queue does not report when it will be done, and every query of it costs a call of
// the driver. So each submission adds its predicted time to a clock of the queue.
// Errors of prediction add up. Two corrections limit them. A stream that was waited for
// has nothing pending. And from time to time one submission is marked: if its event
// completes before its predicted end, or is still pending after it, the clock is moved
// by the difference.
//
// An operand is ready when the last work that wrote it is done. The ends of writes are
// kept in a table of fixed size, hashed by address. A write whose entry was overwritten
// counts as done.
class Backlog {
 public:
  explicit Backlog(size_t devices) : free_(devices, 0.0) {}

  size_t devices() const { return free_.size(); }

  double free_us(size_t position, double now) const {
    return free_[position] > now ? free_[position] : now;
  }

  // The predicted end of the last write to the storage at `home`; `now` if none is
  // pending.
  double written_us(const void* home, double now) const {
    const Write& write = writes_[place_of(home)];
    const bool pending = write.home == home && write.age == age_ && write.end > now;
    return pending ? write.end : now;
  }

  // Records that work was submitted that is predicted to end at `end`.
  void book(size_t position, double end) { free_[position] = end; }
  void book_write(const void* home, double end) {
    writes_[place_of(home)] = {home, age_, end};
  }

  // Takes back work that was booked to run from `begin` to `end`, and is not submitted.
  // Work that was booked after it moves forward.
  void take_back(size_t position, double begin, double end);

  // Corrects the clock of a queue. Marked work was predicted to end at `end`;
  // `has_ended` is what its event showed at `now`.
  void correct(size_t position, double end, double now, bool has_ended);

  // Records that nothing is pending.
  void clear();

 private:
  struct Write {
    const void* home = nullptr;
    uint32_t age = 0;
    double end = 0;
  };
  static constexpr size_t kWrites = 1024;

  static size_t place_of(const void* home) {
    const auto bits = reinterpret_cast<uintptr_t>(home);
    return (bits >> 9 ^ bits >> 20) % kWrites;
  }

  std::vector<double> free_;  // by position
  std::array<Write, kWrites> writes_{};
  uint32_t age_ = 0;  // incremented by clear(); writes of an earlier age are ignored
};

}  // namespace xpurt
