// Where the ops of a chain are divided.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "schedule/planning/division.h"

namespace xpurt {

// Note [Steady boundaries]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Each op of a chain would be divided best in other proportions: a product suits one
// device, a softmax the other, and measured times waver. If each op moved the boundary
// between the shards, bytes would be copied across it at each step. So the ops of a
// chain share one boundary.
//
// Which one: if nothing crosses the boundary, no device waits for another one within
// the chain. A device that computes the proportion x of each op is done after
// sum(launch) + x * sum(whole). So the boundary at which all devices end together is
// that of the sums: the chain is divided as if it were one op, and loses nothing
// against ops that are divided apart. The mean of the proportions, used before, gave a
// short op as much weight as a long one; the simulator showed efficiencies of 0.82 to
// 0.98 with it, where the sums give 0.97 to 1.00 (docs/auto.md has the table).
//
// The sums fade, so that the boundary follows the program. It moves if the chain would
// be shorter by more than a few percent.
class Boundary {
 public:
  // Adds an op to the chain, and returns the proportions in which it is divided, by
  // position. `division`: of the op by itself, or at the boundary as it is. Empty if
  // the chain is faster on one device.
  const std::vector<double>& take(const std::vector<DevicePart>& parts,
                                  const Division& division);

  // Records that the shards are at these proportions.
  void follow(std::vector<double> proportions) { taken_ = std::move(proportions); }

  // The division of an op at the boundary as it is; none before the first op, or if a
  // device has no part.
  Division kept(const std::vector<DevicePart>& parts, size_t devices) const;

 private:
  std::vector<bool> devices_;  // that the last op was divided among, by position
  std::vector<double> launch_us_, whole_us_;  // faded sums by position
  std::vector<double> taken_;
};

// The scheduler's choice for one call: the proportions by position; empty if the call
// is not divided. `alone_us`: when the best candidate alone is done. `in_shards`: the
// operands were left by a divided op, each device has its rows. Then a device alone has
// to gather them, which `alone_us` includes, and the boundary that is there costs
// nothing: it is kept even if one device's queue is longer by more than the op takes.
// Operands that are elsewhere are divided at the boundary, too, unless the queues
// differ so much that this takes clearly longer. `calls`: how many such calls this one
// stands for.
Division divide_call(const std::vector<DevicePart>& parts, size_t devices,
                     double alone_us, bool in_shards, double calls, CopyRegret* regret,
                     Boundary* boundary);

}  // namespace xpurt
