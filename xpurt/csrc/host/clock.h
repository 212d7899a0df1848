// The clock of decisions.
#pragma once

#include <optional>

#include "host/api.h"

namespace xpurt {

// Microseconds of a steady clock.
XPURT_API double now_us() noexcept;

// For tests: the clock stands at `us`, which is not negative; none: it runs.
void stop_clock(std::optional<double> us) noexcept;

}  // namespace xpurt
