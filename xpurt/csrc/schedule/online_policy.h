// Where the next op goes, known when it is asked for: by earliest finish, and never far
// behind the best device alone. Knows no clock, no queue and no tensor; the scheduler
// and the simulator (xpurt/mapping/auto) ask the same class.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

#include "schedule/candidate.h"

namespace xpurt {

// Note [Declining]
// ~~~~~~~~~~~~~~~~
// Earliest finish alone is greedy: it sends an op to a slow idle device to gain a
// little, and its successor waits for the result's way back. So the policy keeps, for
// each device, the time at which that device alone would have finished all ops so far,
// and an op may go to another than the best of these only if it is done there, and its
// results are back, no later than the best device alone would have been done. By
// induction the mix is never behind: if from some point on everything ran on the best
// device, it would wait for nothing that ends later than that, and then do the same
// work. The more the mix has gained, the less the condition binds; where it gains
// nothing, all ops stay on one device.
//
// Where little has been gained yet, a strict condition would leave other devices idle
// for as long as one transfer takes: data then lie where they should not, for the rest
// of a short program. So the mix may be behind by a share of the work seen so far;
// that is spent once, not once per op. When all devices are idle the account begins
// anew, but for what was spent. Which device is the best one changes only for one that
// would have saved more than the way there costs.
class OnlinePolicy {
 public:
  // Raises ValueError if there is no device.
  explicit OnlinePolicy(size_t devices);

  // What each device alone takes for work that was seen before, as for a program that
  // ran once already. Raises ValueError if it is no time.
  void remember(c10::ArrayRef<double> work);

  // The device that runs the op: of those that the note allows the one that finishes
  // first; the lower index where two are equal. `candidates`: one per device. `now` is
  // when it is asked. Raises ValueError if no device can run the op.
  size_t choose(c10::ArrayRef<Candidate> candidates, double now = 0);

  // Which device would have been best alone, and when each would have been done.
  size_t best_alone() const { return best_; }
  c10::ArrayRef<double> alone() const { return alone_; }

 private:
  // By when an op's results have to be able to be at the best device.
  double deadline() const;
  void account(c10::ArrayRef<Candidate> candidates, double now);

  c10::SmallVector<double, 8> alone_;
  c10::SmallVector<double, 8> work_;  // costs so far, old ones fading
  double latest_ = 0;                 // end of what was sent
  double debt_ = 0;  // how far the mix was behind when all was done; fading, too
  uint32_t ops_ = 0;
  size_t best_ = 0;
};

}  // namespace xpurt
