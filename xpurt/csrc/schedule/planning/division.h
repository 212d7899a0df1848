// The division of one op among devices: a shard for each, all ending together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/planning/copy_regret.h"

namespace xpurt {

// Note [Division of an op]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A device that computes the proportion x of an op is done at begin + x * whole.
// `begin` is when its queue is free, a kernel is launched, and the operands that every
// shard reads as a whole are on the device. `whole` is the time of the whole op on that
// device, with the copies of the operands that are divided as the result is. All
// devices end at the same time t if sum((t - begin) / whole) = 1. A device that begins
// after t takes no part. That is the split of EngineCL's HGuided (Nozal, Bosque and
// Beivide, 2020) without its rounds: the speeds are learned from one call to the next,
// and each timed shard corrects them. A shard takes longer than its proportion of a
// whole call if it reads an operand that all shards read. So the times of shards are
// learned separately.
//
// Note [Partial sums]
// ~~~~~~~~~~~~~~~~~~~
// The gradient of a weight is a sum over the samples of the batch. Where devices divide
// the samples, each has a partial sum of the whole result. Home has to receive the
// other ones and add them. The copies run side by side, so each is a part of its
// device's setup. The additions run one after the other: each device that takes part
// makes the end later. So more devices are not always faster, and the number of devices
// is searched: the one with the least proportion leaves first. Without the additions in
// the prediction, 64 equal cards divided a convolution's gradients into 64 parts, whose
// additions took as long as the shards (docs/auto.md).
struct DevicePart {
  size_t position = 0;   // of the device in its ordinal
  double queue_us = 0;   // until its queue is free
  double launch_us = 0;  // with the copy of a partial result to home
  double copies_us = 0;  // of operands that every shard reads as a whole
  double whole_us = 1;   // of the whole op, with copies of operands that are divided
  double sum_us = 0;     // of adding a partial result; the first one is not added
  bool is_new = false;   // it was never timed on such a call

  double setup_us() const { return launch_us + copies_us; }
  double begin_us() const { return queue_us + setup_us(); }
  double alone_us() const { return begin_us() + whole_us; }
};

struct Division {
  std::vector<double> proportions;  // by position; empty: fewer than two devices
  double end_us = 0;

  bool divides() const { return !proportions.empty(); }
};

// The proportions with which all devices end at the same time. A device gets 0 if its
// proportion is small, or is computed in less time than its launch takes. `end_us`
// includes the additions of partial results. `devices`: the number of positions.
Division divide(std::vector<DevicePart> parts, size_t devices);

// The whole units (rows, images) of each device for proportions that add up to 1. The
// last device ends as early as whole units allow: after rounding down, each other unit
// goes to the device that is then done first (D'Hondt's method). If each boundary is
// rounded by itself, a slow device gets 3 units for 2.4 as often as 2.
std::vector<int64_t> units_for(const std::vector<double>& proportions, int64_t units);

// The time of the whole op on a device without what it begins with, by that of a shard.
double whole_us_of(double shard_us, double setup_us, double proportion);

// When a device that computes these proportions is done: the last of them.
double end_of(const std::vector<DevicePart>& parts,
              const std::vector<double>& proportions);

// The additions of the partial results of the devices that take part.
double sums_of(const std::vector<DevicePart>& parts,
               const std::vector<double>& proportions);

// Whether a division is worth it, if the best candidate alone is done after `alone_us`:
// from the time when the first queue is free, it takes at most kMaxDividedTime of the
// time of that candidate. The time before does not count: behind a long queue, an op
// would gain nearly nothing of it, and none would be divided.
constexpr double kMaxDividedTime = 0.9;
bool pays(const Division& division, const std::vector<DevicePart>& parts,
          double alone_us);

// The same parts with all operands in place, and the time of the copies that this
// saves the devices that take part in `division`.
std::vector<DevicePart> without_copies(std::vector<DevicePart> parts);
double copies_of(const Division& division, const std::vector<DevicePart>& parts);

// The division that pays: with the copies that it needs, or, if these are an investment
// that is due (Note [Copies that stay]), in the proportions without them. `calls`: how
// many such calls this one stands for.
Division divide_if_it_pays(const std::vector<DevicePart>& parts, size_t devices,
                           double alone_us, double calls, CopyRegret* regret);

// Note [First shards]
// ~~~~~~~~~~~~~~~~~~~
// A device that was never timed on such a call has to build a kernel, and may be much
// slower than expected. As with other unproven candidates (Note [Exploration]) it takes
// no part until the regret has reached the time of a build. Then its shards are small
// while it is timed. That costs next to nothing, since the other devices work
// meanwhile.

// The parts of devices that were timed.
std::vector<DevicePart> known_parts(const std::vector<DevicePart>& parts);

// Limits the proportions of devices that are new; the others take the rest.
void limit_new_parts(const std::vector<DevicePart>& parts,
                     std::vector<double>* proportions);

}  // namespace xpurt
