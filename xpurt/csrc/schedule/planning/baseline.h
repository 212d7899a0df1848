// Whether a program runs faster with all devices than on the best one alone, by the
// time that the whole program takes. Uses no clock, no queue and no tensor.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/planning/cusum.h"
#include "schedule/planning/loop_place.h"

namespace xpurt {

// Note [Baseline]
// ~~~~~~~~~~~~~~~
// Devices are chosen op by op, by the predicted times of single ops. What no single op
// shows can make the program slower nevertheless: the host is busy with submissions,
// two devices share one memory, results are moved again and again. ResNet-18 with small
// batches took 1.33 times as long as on the CPU alone, though each divided convolution
// was measured to be faster.
//
// So the program is measured, too, as conservative bandits measure their default arm
// (Wu, Shariff, Lattimore and Szepesvari, 2016). Here the default arm is the best
// device alone. In a comparison both arms take turns, and the one that lost is not used
// until the next comparison. The pause before it is a multiple of the time that this
// one took, and it is doubled as long as the answer stays the same. So the arm that
// loses costs a small and falling part of the program's time, whichever it is.
//
// A turn is measured as time per work. The work of an op is what it takes on the best
// device alone, as expected without what was learned: what is wrong is wrong in both
// arms. A
// program is mostly a loop, and its parts gain differently from several devices. So a
// turn lasts until the program has come back to the place where the turn was begun: the
// same kinds of ops as the last ones before it. The first ops after a change of arms
// are not measured, since they wait for work and data of the other arm. Each arm has
// learned times of its own, and the first turn on the best device alone begins later,
// when those of most ops are known: a kernel that shares the memory with other devices
// takes longer.
//
// Time in which the program has waited for all devices and gives them no work is the
// same in both arms. It would only blur the comparison, so it is left out.
//
// With all devices the time per work is watched between comparisons. If it rises, the
// next one begins at once: another process may have taken a device, and then the
// program waits for the shards on it. On one device the program loses nothing by
// waiting for the next comparison.
//
// Only long ops are counted, and a program that gives next to no work to other devices
// is not compared. If most of its work is ops that no comparison has seen, it is
// another program, or another part of it: it is compared as if it had just begun.
class Baseline {
 public:
  // Adds a long op. `kind`: ops of a kind have the same number. `alone_us`: predicted
  // on the best device alone. `elsewhere`: another device has a part in it. `now`:
  // microseconds in which the program had work. Returns whether is_alone() has changed.
  bool add(uint64_t kind, double alone_us, bool elsewhere, double now);

  // Whether all ops are to run on the best device alone.
  bool is_alone() const { return alone_; }

  // Whether the arms are taking turns. Else not every op has to be added.
  bool is_comparing() const { return turn_ > 0; }

  // Whether the measured part of a turn has begun.
  bool is_measuring() const { return is_comparing() && measured_us_ > 0; }

  // Time with all devices over time on the best one alone, by the last comparison. 0:
  // there was none.
  double ratio() const { return ratio_; }

 private:
  void begin_turn(double now);
  bool end_turn(double now);
  double rounds_us() const;
  bool is_there(double since_us) const;
  bool is_another_program(uint64_t kind, double alone_us);
  bool has_slowed(double alone_us, double now);
  bool is_decided() const;
  bool decide(double now);

  bool alone_ = false;
  double ratio_ = 0;

  // Between comparisons.
  double next_us_ = 0;  // when the next one may begin; 0: no op was seen
  double pause_ = 0;    // in multiples of the time of a comparison
  bool was_alone_ = false, knows_alone_ = false;
  double work_us_ = 0, elsewhere_us_ = 0;
  Cusum slowing_;
  bool slowed_ = false;  // that began the comparison
  double watched_since_us_ = 0, watched_work_us_ = 0;
  double watches_from_us_ = 0;

  std::bitset<256> compared_;  // kinds of ops, by eight bits of each
  int ops_ = 0;                // the last ones, up to kOpsOfAProgram
  double seen_us_ = 0, unseen_us_ = 0;

  // During one.
  int turn_ = 0;  // 1 for the first
  double begun_us_ = 0;
  double turn_us_ = 0;  // when the turn's arm was taken
  int turn_ops_ = 0;
  double measured_us_ = 0;               // when the measured part began; 0: not yet
  double per_work_[2] = {0, 0};          // of the pair of turns
  std::vector<double> ratios_, of_all_;  // of each pair, and per work with all devices

  LoopPlace place_;
  std::optional<LoopPlace::Place> anchor_;  // where turns begin and end; none: anywhere
};

}  // namespace xpurt
