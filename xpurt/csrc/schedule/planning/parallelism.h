// How many ops of a program could run at the same time, and what that is worth. Uses no
// clock, no queue and no tensor.
#pragma once

#include <c10/util/ArrayRef.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "schedule/planning/candidate.h"

namespace xpurt {

// Ops below this time are too short for what is said here: a full decision of each, and
// a launch on another device, would take a large part of it.
constexpr double kLongUs = 200;

// Note [Overlap]
// ~~~~~~~~~~~~~~
// PyTorch's CPU kernel blocks the host. At the next decision home is free again, so by
// earliest finish every op runs there, and the other devices are never used by a
// program of two independent chains. The row's kernel on home's queue leaves the host
// free to submit work to the others. It is worth more than its own time if there is
// such work.
//
// The average parallelism A of the ops says whether there is: the sum of their times,
// over the time of the longest path along their data (work over span). On n devices,
// every schedule that leaves no device idle without need runs at least
// S = nA / (n + A - 1) times as fast as one device (Eager, Zahorjan and Lazowska, 1989;
// by Brent, 1974). For devices of different speeds, n is the sum of the speeds over
// home's. So an op takes kernel_us / S of the program's time if home's queue runs it.
// That is compared with the time of PyTorch's kernel, in which nothing else is
// submitted. For a single chain A is 1, hence S is 1, and nothing changes. The upper
// bound min(n, A) was rejected: with it a training step, whose A is 1.5 from the two
// gradients of each layer, would count on all of what the devices could gain.
//
// The path is one of the program's data and of its host. What an op reads is there when
// its writer ends. Where the host waits (item(), a synchronization), or runs an op that
// blocks it whatever is chosen, no later op begins before. Only long ops are counted,
// so that short ones stay as cheap as they are. A value of unknown origin may be the
// result of a short op that read what was computed last. So it counts as written at the
// end of everything before. An operand is known if it was read or written by a long op,
// and has its version of then.
class Parallelism {
 public:
  // An operand. `value`: a number that is never given to another storage; `version`:
  // changes if it is written.
  struct Operand {
    uint64_t value = 0;
    uint32_t version = 0;
  };

  // Adds a long op. Returns when its results are there, in microseconds of the longest
  // path. `blocks`: no later op can be submitted before its end.
  double add(double cost_us, c10::ArrayRef<Operand> reads, bool blocks);
  // Records what an op has written, and when that is there. The version is that of the
  // next read.
  void add_written(const Operand& written, double end_us) {
    known_[place_of(written)] = {written, window_, end_us};
  }
  // The same of a result, which may be an operand that was recorded as written.
  void add_result(const Operand& result, double end_us);

  // Records that the host has waited for what came before.
  void join() { base_us_ = span_us_; }

  // At least 1. Old ops fade.
  double average() const;

 private:
  // Ops of one window; each window counts half as much as the next.
  static constexpr int kWindow = 64;
  static constexpr size_t kKnown = 512;

  struct Known {
    Operand operand;
    uint32_t window = 0;  // 0: none
    double end_us = 0;    // in that window; 0 in later ones
  };

  static size_t place_of(const Operand& operand) { return operand.value % kKnown; }
  double ready_us(const Operand& read);

  double past_work_us_ = 0, past_span_us_ = 0;  // of earlier windows, faded
  double work_us_ = 0, span_us_ = 0;
  double base_us_ = 0;  // no op begins before
  int ops_ = 0;
  uint32_t window_ = 1;
  std::array<Known, kKnown> known_{};  // hashed; what was overwritten is unknown
};

// The candidates of an op, by what they are worth together. Times in microseconds.
struct Overlap {
  // `with_unproven`: candidates that are held back count, too.
  Overlap(const Candidates& candidates, size_t home, bool with_unproven);
  Overlap(double kernel_us, double native_us, double others)
      : kernel_us(kernel_us), native_us(native_us), others(others) {}

  double kernel_us;   // on home's queue
  double native_us;   // of the kernel at home that blocks the host
  double others = 0;  // how many such ops all other devices compute in a microsecond

  // What the op takes of the program's time on home's queue.
  double us(double parallelism) const;

  // Whether home's queue runs the op rather than the kernel that blocks the host.
  // `is_in_use`: it did so the last time. Two choices that are about as good should not
  // alternate.
  bool prefers_queue(double parallelism, bool is_in_use) const;

  // Whether the host is blocked by the op, whatever the parallelism is.
  bool always_blocks() const { return !prefers_queue(kEndless, false); }

 private:
  static constexpr double kEndless = 1e9;
};

}  // namespace xpurt
