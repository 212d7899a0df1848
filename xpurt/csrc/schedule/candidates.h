// The predicted costs of the candidates to run an op. Included by files of schedule/
// only.
#pragma once

#include "memory/replica/replica.h"
#include "schedule/planning/candidate.h"
#include "schedule/device_statistics.h"
#include "schedule/scheduler.h"
#include "schedule/slowdown.h"
#include "schedule/stream_clock.h"

namespace xpurt {

struct CallToDecide;
struct Decision;

// Whether the work may run at home only: a storage may not leave home, or the thread is
// restricted to home.
bool must_run_at_home(const Work& work);

// Whether the device runs OpenCL kernels and supports the types of the work.
bool can_run(const Work& work, const PhysicalDevice& device);

// One bit for each position at which the work may run. The device supports its types
// and is not excluded. If any of these is of the kind that the thread prefers, only
// devices of that kind remain. If it prefers none, and the program is held to one
// device that qualifies (Note [Baseline]), only that one. The home bit alone if none
// qualifies.
uint64_t positions_for(const Work& work, const Ordinal& devices);

// The roofline of Williams, Waterman and Patterson (2009), with the launch added.
double roofline_us(const Work& work, const DeviceCost& cost);
// The same at a position, with the number of launches that the work takes there.
double roofline_us(const Work& work, const std::vector<DeviceCost>& costs,
                   size_t position);

// Microseconds that copying the operands takes that are not valid on the device, and
// those that do not stay there.
struct Moves {
  double us = 0, streams_us = 0;
};
Moves moves_of(const Work& work, const Ordinal& devices, size_t position,
               const std::vector<DeviceCost>& costs);

// A candidate without its cost, which the caller fills in. Without a clock, all queues
// count as free.
Candidate make_candidate(const Work& work, const Ordinal& devices, size_t position,
                         const std::vector<DeviceCost>& costs, const StreamClock* clock,
                         double now);

// Fills in the expected times and the candidates of a call on several devices, with
// their predicted ends. Without a clock, all queues count as free. `learns`: costs are
// corrected by measured times. Under the scheduler's mutex.
void compare(const CallToDecide& call, const Work& work, Stream& stream,
             const std::vector<DeviceCost>& costs, const FoundBucket& found,
             const StreamClock* clock, bool learns, Decision* decision);

// The same on an ordinal of one device. Nothing is copied there, and what is pending
// delays all candidates alike.
void compare_on_one(const CallToDecide& call, const Ordinal& devices,
                    const FoundBucket& found, bool learns, Decision* decision);

// The position of the device that runs a candidate.
size_t position_of(size_t candidate, const Ordinal& devices);

// The slowdown of a physical device, or of PyTorch's CPU kernels. Under the scheduler's
// mutex.
Slowdown& slowdown_of(const Ordinal& devices, size_t candidate);

// Records a timed sample in the prior of its device, unless that is home. Under the
// scheduler's mutex.
void record_in_prior(const Decision& decision, const Ordinal& devices,
                     const FoundBucket& found, size_t candidate, double own_us);

// The time of a candidate: the expected one, corrected by samples of this kind of call,
// else by the device's prior.
double corrected_us(const Decision& decision, const Ordinal& devices,
                    const FoundBucket& found, size_t candidate);

// The candidate that finishes first. Ties go to home, then to the lowest index.
size_t earliest(const Candidates& candidates, size_t home);

// The position with the least cost. Uses no clock and nothing that was learned.
size_t choose_by_costs(const Work& work, Stream& stream);

}  // namespace xpurt
