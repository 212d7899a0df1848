// Ways to run an op that are not known, or not known any more: when to try them, and
// when to take a time.
#pragma once

#include "op_places.h"
#include "placing.h"

namespace xpurt {

// Makes ways impossible that are not to be used yet: see Note [New ways].
void hold_new_ways_back(const FoundBucket& found, uint32_t calls, Placing* placing);

// A way to try instead of the one that was chosen; that one as a rule.
size_t trial(PlaceBucket& bucket, const Placing& placing, size_t chosen);

// Calls between two that are timed.
uint32_t calls_between(const LearnedCost& factor);

// Whether this call is to be timed.
bool is_time_to_learn(PlaceBucket& bucket, const LearnedCost& cost);

}  // namespace xpurt
