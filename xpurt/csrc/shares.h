// Large ops that several devices do together: who does how much.
#pragma once

#include <exception>
#include <vector>

#include "op_places.h"
#include "placing.h"
#include "stream_clock.h"

namespace xpurt {

// Makes the call one of several devices, if they are predicted to be done clearly
// sooner than by the way that was chosen. Under the scheduler's mutex.
// `calls`: how many such calls this one stands for.
void divide(const PlacedCall& call, const Work& work, Stream& stream,
            const std::vector<DeviceCost>& costs, const FoundBucket& found,
            StreamClock& clock, uint32_t calls, Placing* placing);

// The current op was divided so, by position.
void note_divided(std::vector<double> fractions);

// A piece of it runs at home instead, since its device threw this: the call's times say
// nothing. A device that failed is taken out.
void note_moved_piece(const std::exception_ptr& error);

// When the pieces of a divided call had ended, by position, on the scheduler's clock.
void note_pieces(const Placing& placing, Stream& stream, double begin_us,
                 const std::vector<double>& ends_us);

}  // namespace xpurt
