// Large ops that several devices compute together: the proportion of each device.
#pragma once

#include <vector>

#include "schedule/decision.h"
#include "schedule/device_statistics.h"
#include "schedule/row_run.h"
#include "schedule/stream_clock.h"

namespace xpurt {

// Whether the call may be divided: it is large, and its rows are computed separately.
bool is_divisible(const CallToDecide& call, const Work& work, const Stream& stream);

// Divides the call among several devices, if they are predicted to be done clearly
// sooner than the best candidate alone. Under the scheduler's mutex. `calls`: how many
// such calls this one stands for.
void partition_call(const CallToDecide& call, const Work& work, Stream& stream,
                    const std::vector<DeviceCost>& costs, const FoundBucket& found,
                    StreamClock& clock, uint32_t calls, Decision* decision);

// The proportions, by position, in which the devices would divide the work so that all
// end at the same time, by costs alone. Their sum is 1. Empty if one device alone is
// expected to be about as fast.
std::vector<double> partition_proportions(const Work& work, Stream& stream);

// Takes back the predicted times of the other devices' shards: the call was to be
// divided, and ran whole at the decision's position.
void take_back_undivided(const Decision& decision, Stream& stream);

// Records the times of the shards of a divided run. `ends_us`: when they had ended, by
// position, on the scheduler's clock. `stall_us`: for which the host was delayed.
void record_shards(const RowRun& run, Stream& stream, double begin_us,
                   const std::vector<double>& ends_us, double stall_us);

}  // namespace xpurt
