// Streams that were made to wait for work that is captured.
#pragma once

#include "stream/stream.h"

namespace xpurt {

// Note [Waiting for captured work]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A graph holds the work of one stream. Another stream may be told to wait for an event
// of the capture, as autograd does between the streams of a gradient's producer and of
// its consumer, even where the consumer submits nothing. So such waits are recorded
// here. Until the capture ends, work for the waiting stream, and waits for it, are
// refused.

void wait_for_captured(const Stream& stream);
bool waits_for_captured(const Stream& stream);

// At the end of the capture.
void forget_captured_waits();

}  // namespace xpurt
