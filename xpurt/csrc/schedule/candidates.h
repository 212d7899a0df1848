// What the candidates to run an op are predicted to cost: for the scheduler's own
// files.
#pragma once

#include "memory/replica/replica.h"
#include "schedule/candidate.h"
#include "schedule/scheduler.h"
#include "schedule/stream_clock.h"

namespace xpurt {

// Whether the work may run at home only: a storage may not leave, or the thread's ops.
bool must_run_at_home(const Work& work);

// Whether the device has the types of the work.
bool can_run(const Work& work, const PhysicalDevice& device);

// One bit for each position at which the work may run: the device has its types, and is
// what the thread prefers, if any such is.
uint64_t positions_for(const Work& work, const Ordinal& devices);

// The roofline of Williams, Waterman and Patterson (2009), with the launch added.
double roofline_us(const Work& work, const DeviceCost& cost);
// The same at a position, with the launches that the work takes there.
double roofline_us(const Work& work, const std::vector<DeviceCost>& costs,
                   size_t position);

// Of the operands that are not valid on the device.
double moves_us(const Work& work, const Ordinal& devices, size_t position,
                const std::vector<DeviceCost>& costs);

// A candidate whose cost is still to be filled in. Without a clock all queues are free.
Candidate make_candidate(const Work& work, const Ordinal& devices, size_t position,
                         const std::vector<DeviceCost>& costs, const StreamClock* clock,
                         double now);

// The one that finishes first; of equals home, then the lowest.
size_t earliest(const Candidates& candidates, size_t home);

// A position by costs alone: no clock, nothing that was learned.
size_t choose_by_costs(const Work& work, Stream& stream);

}  // namespace xpurt
