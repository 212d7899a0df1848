// Large ops that several devices do together: who does how much.
#pragma once

#include <vector>

#include "schedule/decision.h"
#include "schedule/device_statistics.h"
#include "schedule/row_run.h"
#include "schedule/stream_clock.h"

namespace xpurt {

// Makes the call one of several devices, if they are predicted to be done clearly
// sooner than by the candidate that was chosen. Under the scheduler's mutex.
// `calls`: how many such calls this one stands for.
void partition_call(const CallToDecide& call, const Work& work, Stream& stream,
                    const std::vector<DeviceCost>& costs, const FoundBucket& found,
                    StreamClock& clock, uint32_t calls, Decision* decision);

// In which proportions, by position, the devices would proportion work that can be
// divided, by costs alone, so that all end at once; their sum is 1. Empty where one
// device alone is expected to be about as fast.
std::vector<double> partition_proportions(const Work& work, Stream& stream);

// When the shards of a divided run had ended, by position, on the scheduler's clock.
void record_shards(const RowRun& run, Stream& stream, double begin_us,
                   const std::vector<double>& ends_us);

}  // namespace xpurt
