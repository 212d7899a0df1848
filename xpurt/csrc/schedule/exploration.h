// When to try candidates whose times are unknown or old, and which calls to time.
#pragma once

#include "schedule/decision.h"
#include "schedule/device_statistics.h"

namespace xpurt {

// Adds to the regret of candidates that were never timed, and holds them back while it
// is low: see Note [Exploration]. `calls`: how many calls this decision stands for.
void hold_back_unproven(const FoundBucket& found, uint32_t calls, Decision* decision);

// The candidate to run: one to try, if a trial is due; else `chosen`.
size_t trial(StatisticsBucket& bucket, const Decision& decision, size_t chosen);

// Calls between two timed samples.
uint32_t sampling_interval(const LearnedCost& factor);

// Whether this call is a timed sample. If so, the count of calls starts again.
bool is_sample_due(StatisticsBucket& bucket, const LearnedCost& cost);

}  // namespace xpurt
