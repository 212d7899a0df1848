// A candidate to run an op, with the predictions that the choice uses.
#pragma once

#include <c10/util/SmallVector.h>

#include <limits>

namespace xpurt {

// A kernel on one of the devices, or PyTorch's CPU kernel. Times are microseconds of
// one clock.
struct Candidate {
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double free_us = 0;       // when its queue is predicted to be free
  double ready_us = 0;      // when the operands are predicted to be on the device
  double cost_us = kNever;  // of the work itself; infinite where it cannot run
  double moves_us = 0;      // of the copies that `ready_us` includes
  double streams_us = 0;    // of those that each such call has to make anew
  double leave_us = 0;      // of copying the results to another device afterwards
  double best_us = kNever;  // of the device's other kernel, if that is faster
  bool held_back = false;   // not worth a trial yet: see Note [Exploration]

  double start_us() const { return free_us > ready_us ? free_us : ready_us; }
  double finish_us() const { return start_us() + cost_us; }
  bool can_run() const { return cost_us < kNever; }
  bool is_possible() const { return can_run() && !held_back; }
  double offered_us() const { return held_back ? kNever : cost_us; }
  // What the op would cost if the device ran everything.
  double alone_us() const {
    return streams_us + (offered_us() < best_us ? offered_us() : best_us);
  }
};
using Candidates = c10::SmallVector<Candidate, 4>;

}  // namespace xpurt
