// One run of a row: what was decided for it, and what became of it.
#pragma once

#include <vector>

namespace xpurt {

struct Decision;

// Goes from the dispatch through the row to all that asks for a device. A row that
// runs another row hands it on; ops that a row calls through PyTorch's dispatcher are
// calls of their own, with a decision of their own (see Note [Device overrides]).
struct RowRun {
  const Decision* decision = nullptr;  // of the scheduler; none: by costs alone
  int device_id = -1;                  // the physical device that ran it
  std::vector<double> fractions;       // by position, if it was divided
  bool shard_moved = false;            // to another device than it was for
};

}  // namespace xpurt
