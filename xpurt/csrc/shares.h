// Large ops that several devices do together: who does how much.
#pragma once

#include <vector>

#include "op_places.h"
#include "placing.h"
#include "row_run.h"
#include "stream_clock.h"

namespace xpurt {

// Makes the call one of several devices, if they are predicted to be done clearly
// sooner than by the way that was chosen. Under the scheduler's mutex.
// `calls`: how many such calls this one stands for.
void divide(const PlacedCall& call, const Work& work, Stream& stream,
            const std::vector<DeviceCost>& costs, const FoundBucket& found,
            StreamClock& clock, uint32_t calls, Placing* placing);

// In which proportions, by position, the devices would share work that can be divided,
// by costs alone, so that all end at once; their sum is 1. Empty where one device alone
// is expected to be about as fast.
std::vector<double> shares_of(const Work& work, Stream& stream);

// When the pieces of a divided run had ended, by position, on the scheduler's clock.
void note_pieces(const RowRun& run, Stream& stream, double begin_us,
                 const std::vector<double>& ends_us);

}  // namespace xpurt
