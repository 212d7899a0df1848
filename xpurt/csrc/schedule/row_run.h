// One run of a row: its decision, and where it ran.
#pragma once

#include <vector>

namespace xpurt {

struct Decision;

// Passed from the dispatch through the row to every choice of a device. A row that runs
// another row passes it on. Ops that a row calls through PyTorch's dispatcher are
// separate calls with decisions of their own (see Note [Device overrides]).
struct RowRun {
  const Decision* decision = nullptr;  // of the scheduler; nullptr: by costs alone
  int device_id = -1;                  // the physical device that ran it
  std::vector<double> fractions;       // by position, if it was divided
  bool shard_moved = false;            // a shard ran on another device than planned
};

}  // namespace xpurt
