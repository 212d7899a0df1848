// Candidates to run an op that are not known, or not known any more: when to try them,
// and when to take a time.
#pragma once

#include "schedule/decision.h"
#include "schedule/device_statistics.h"

namespace xpurt {

// Makes candidates impossible that are not to be used yet: see Note [Exploration].
void hold_back_unproven(const FoundBucket& found, uint32_t calls, Decision* decision);

// A candidate to try instead of the one that was chosen; that one as a rule.
size_t trial(StatisticsBucket& bucket, const Decision& decision, size_t chosen);

// Calls between two that are timed.
uint32_t sampling_interval(const LearnedCost& factor);

// Whether this call is to be timed.
bool is_sample_due(StatisticsBucket& bucket, const LearnedCost& cost);

}  // namespace xpurt
