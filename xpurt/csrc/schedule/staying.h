// Operands that stay on a device that is short of memory: what they save there, and
// when they are copied to it.
#pragma once

#include <ATen/core/TensorBase.h>

#include <optional>

#include "schedule/decision.h"

namespace xpurt {

// Records what the call saves on each device by having its operands there, over the
// time of copying them: see Note [Values of copies]. Nothing if no device is short of
// memory. Without the scheduler's mutex.
void record_saved(const Work& work, const Ordinal& devices,
                  const std::vector<DeviceCost>& costs, const Candidates& candidates);

// The position of a device that the operands are copied to, since they would stay there
// and calls without them have lost as much time as that takes: see
// Note [Copies that stay]. `chosen`: the candidate that finishes first.
std::optional<size_t> position_to_copy_to(const Work& work, const Ordinal& devices,
                                          const Candidates& candidates, size_t chosen,
                                          StatisticsBucket& bucket);

}  // namespace xpurt
