// Where the ops of some calls went, and why: kept while somebody asks.
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
  double moves_us;   // copies of what is not valid there
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

// All threads' ops. Whoever asks may do so while others do, as in an explained call
// that explains one of its own: each gets what ran between its begin and its end. The
// number that begin gives is for the end that belongs to it.
size_t begin_explaining();
std::vector<ExplainedOp> end_explaining(size_t begin);

// An op ran, as a row or natively.
void explain_op(const OpRecord& record, Tier tier, const RowRun& run);

}  // namespace xpurt
