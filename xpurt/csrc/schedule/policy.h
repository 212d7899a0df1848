// Which device of an ordinal an op runs on.
#pragma once

#include "op/op_cost.h"
#include "schedule/row_run.h"
#include "schedule/scheduler.h"
#include "stream/stream.h"

namespace xpurt {

// A call's cost for the scheduler, with what is known now about where its operands are;
// valid as long as `cost` is. Called without the scheduler's lock.
Work work_of(const OpCost& cost, const Ordinal& devices);

// Position in the stream's ordinal of the device that the op runs on. The run records
// the device for the report. `planned`: the position that a plan has for it, which is
// taken if the op may run there; -1: there is no plan.
size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run, int planned = -1);

}  // namespace xpurt
