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
// the device for the report.
size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run);

}  // namespace xpurt
