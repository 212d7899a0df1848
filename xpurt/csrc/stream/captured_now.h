// Whether work is recorded into an XPU graph, for libraries beside the core.
#pragma once

#include "host/api.h"

namespace xpurt {

// Whether the current stream of the current device is captured.
XPURT_API bool current_stream_is_captured();

}  // namespace xpurt
