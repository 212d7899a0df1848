// Streams that wait for captured work.
#pragma once

#include "stream/stream.h"

namespace xpurt {

// Note [Waiting for captured work]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A graph holds the work of one stream. Another stream may be made to wait for an event
// of the capture. Autograd does this between the streams of a gradient's producer and
// of its consumer, even where the consumer submits nothing. So the wait itself is only
// recorded here. Until the capture ends, work for the waiting stream is refused, and so
// are waits for that stream.

void wait_for_captured(const Stream& stream);
bool waits_for_captured(const Stream& stream);

// At the end of the capture.
void forget_captured_waits();

}  // namespace xpurt
