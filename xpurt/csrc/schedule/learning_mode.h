// Whether times of the running program influence the choices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/api.h"
#include "op/cost_table.h"

namespace xpurt {

// The data that a choice is based on.
enum class LearningMode : uint8_t {
  learns,   // costs, corrected by measured times
  table,    // costs alone: XPURT_LEARN=0, or an XPU graph is being captured
  planned,  // costs alone, and all queues count as free: results repeat bit for bit
};
constexpr size_t kLearningModes = 3;

XPURT_API LearningMode learning_mode();

void set_learning(bool on);
bool learning_is_on();

// Whether results have to repeat bit for bit: then no time of this run influences any
// decision. On with torch.use_deterministic_algorithms(True), too.
void set_deterministic(bool on);
bool is_deterministic();

// For tests: microseconds that are added to every time that is learned from.
void set_learning_bias(TierCosts us);
TierCosts learning_bias();

}  // namespace xpurt
