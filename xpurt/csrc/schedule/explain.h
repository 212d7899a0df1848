// The device and the reason of each op's run, recorded while xpurt.explain is active.
#pragma once

#include <atomic>
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
};

struct ExplainedOp {
  std::string op;
  std::string device;
  Tier tier;
  std::string why;
  std::vector<ExplainedCandidate> candidates;  // empty if there was nothing to choose
};

// Records the ops of all threads. Explanations may overlap or nest: each end returns
// the ops that ran since its begin. `begin` is the number that the matching
// begin_explaining() returned. Raises RuntimeError if there is none.
size_t begin_explaining();
std::vector<ExplainedOp> end_explaining(size_t begin);

// Records that an op ran, as a row or natively.
void explain_op(const OpRecord& record, Tier tier, const RowRun& run);

}  // namespace xpurt
