// When the queues of one stream are predicted to be free, and what its kernels write to
// be there. Knows no device; times are microseconds of one clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xpurt {

// Note [Predicted clocks]
// ~~~~~~~~~~~~~~~~~~~~~~~
// A queue does not tell when it will be done, and asking it anything costs a call of
// the driver. So each submission adds its predicted time to a clock of the queue. What
// is predicted wrong adds up, hence two corrections: a stream that was waited for has
// nothing pending, and now and then one piece of work is marked: when its event is
// complete before or is still pending after its predicted end, the clock is moved by
// the difference.
//
// An operand is ready when the work that wrote it last is done. The ends of writes are
// kept in a table by address that forgets: an entry that another one took is taken for
// long done.
class Backlog {
 public:
  explicit Backlog(size_t devices) : free_(devices, 0.0) {}

  size_t devices() const { return free_.size(); }

  double free_us(size_t position, double now) const {
    return free_[position] > now ? free_[position] : now;
  }

  // When the storage at `home` is valid where it was written last.
  double written_us(const void* home, double now) const {
    const Write& write = writes_[place_of(home)];
    const bool pending = write.home == home && write.age == age_ && write.end > now;
    return pending ? write.end : now;
  }

  // Work that ends at `end` was submitted.
  void book(size_t position, double end) { free_[position] = end; }
  void book_write(const void* home, double end) {
    writes_[place_of(home)] = {home, age_, end};
  }

  // Marked work that was predicted to end at `end` was seen to have ended, or not to
  // have ended, at `now`.
  void correct(size_t position, double end, double now, bool has_ended);

  // Nothing is pending.
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
  uint32_t age_ = 0;  // grows when everything is forgotten
};

}  // namespace xpurt
