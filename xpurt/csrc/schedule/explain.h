// The device and the reason of each op's run, recorded while xpurt.explain is active.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "op/tier.h"

namespace xpurt {

struct OpRecord;
struct RowRun;

extern std::atomic<bool> calls_are_explained;
inline bool is_explaining() {
  return calls_are_explained.load(std::memory_order_relaxed);
}

// A candidate to run an op. Microseconds from the decision on.
struct ExplainedCandidate {
  std::string device;
  bool native;
  double free_us;    // when its queue is predicted to be free
  double moves_us;   // of copies of operands that are not valid there
  double cost_us;    // the work itself; infinite where it cannot run
  double finish_us;  // predicted
  bool held_back;    // not worth a trial yet: see Note [Exploration]
  uint64_t samples;  // timed calls that its cost is based on
  double timed_us;   // what these took; 0 if there are none
};

struct ExplainedOp {
  std::string op;
  std::string device;
  Tier tier;
  std::string why;
  double measured_us;  // of a call that the host has waited for; 0: not measured
  std::vector<ExplainedCandidate> candidates;  // empty if there was nothing to choose
};

// Records the ops of all threads. Explanations may overlap or nest: each end returns
// the ops that ran since its begin. `begin` is the number that the matching
// begin_explaining() returned. Raises RuntimeError if there is none.
size_t begin_explaining();
std::vector<ExplainedOp> end_explaining(size_t begin);

// Records that an op ran, as a row or natively. `measured_us`: see ExplainedOp.
void explain_op(const OpRecord& record, Tier tier, const RowRun& run,
                double measured_us);

// Records that something ran that is no op on xpu: a part of a compiled graph, or an op
// on CPU tensors.
void explain_other(std::string name, std::string device, Tier tier, std::string why,
                   double measured_us = 0);

}  // namespace xpurt
