// The online scheduling policy: chooses the device of each op as it arrives, by
// earliest finish, and never falls far behind the best device alone. Uses no clock, no
// queue and no tensor. The scheduler and the simulator of xpurt_tools use the same
// class.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

#include "schedule/planning/candidate.h"

namespace xpurt {

// Note [Declining]
// ~~~~~~~~~~~~~~~~
// Earliest finish alone is greedy: it sends an op to a slow idle device for a small
// gain, and the op's successor waits for the copy of the result. So the policy keeps,
// for each device, the time at which that device alone would have finished all ops so
// far. The best device is the one that needs the least time for all ops, old ones
// fading (it changes only as described below). An op may run on another device under
// one condition: the op ends there, and its results are back, no later than the best
// device alone would have been done. By induction the mix is never behind. Proof: if
// from some point on all ops ran on the best device, they would wait for nothing that
// ends after that time, and then take the same time. The more the mix has gained, the
// weaker the condition. If it gains nothing, all ops stay on one device.
//
// While little has been gained, a strict condition leaves the other devices idle for
// the time of one transfer. The data then lie on the wrong device for the rest of a
// short program. So the mix may be behind by a fraction of the work seen so far. That
// slack is spent once, not once per op. When all devices are idle, the accounts start
// again, but slack that was spent stays spent. Another device becomes the best one only
// if it would have saved more time than the copies to it take.
class OnlinePolicy {
 public:
  // Raises ValueError if `devices` is 0.
  explicit OnlinePolicy(size_t devices);

  // Adds known work, for example of an earlier run of the program. `work`: microseconds
  // that each device alone takes for it. Raises ValueError if a time is negative or not
  // finite, or if there is not one per device.
  void remember(c10::ArrayRef<double> work);

  // The device that runs the op: the one that finishes first among those that
  // Note [Declining] allows. Ties go to the lower index. `candidates`: one per device.
  // `now`: the time of the decision. `is_idle`: all submitted work is done. Raises
  // ValueError if no device can run the op, or if there is not one candidate per
  // device.
  size_t choose(c10::ArrayRef<Candidate> candidates, double now = 0,
                bool is_idle = false);

  // The device that would have been best alone, and the time at which each device alone
  // would have been done.
  size_t best_alone() const { return best_; }
  c10::ArrayRef<double> alone() const { return alone_; }

  // By how many microseconds the last op has put the mix further ahead of the best
  // device alone; negative: behind it. As predicted.
  double gained_us() const { return gained_us_; }

 private:
  // The time by which the results of an op on another device have to be back at the
  // best device.
  double deadline() const;
  static double streamed_end(const Candidate& best, double now);
  void account(c10::ArrayRef<Candidate> candidates, double now, bool is_idle);
  void note_gain(c10::ArrayRef<Candidate> candidates, double now, double finish);

  c10::SmallVector<double, 8> alone_;
  c10::SmallVector<double, 8> work_;  // sum of costs; old costs fade
  double latest_ = 0;                 // predicted end of the submitted work
  double debt_ = 0;     // by how much the mix was behind when idle; fades, too
  double mix_end_ = 0;  // the same; work that has ended early does not count
  double gained_us_ = 0;
  uint32_t ops_ = 0;
  size_t best_ = 0;
};

}  // namespace xpurt
