#include "schedule/policy.h"

#include "memory/replica/device_override.h"
#include "schedule/decision.h"

namespace xpurt {

Work work_of(const OpCost& cost, const Ordinal& devices) {
  Work work;
  work.flops = cost.flops * static_cast<double>(cost.elements);
  work.bytes = static_cast<double>(cost.bytes);
  work.needs_fp64 = cost.needs_fp64;
  work.launches = cost.launches;
  work.reads = cost.reads;
  work.writes = cost.writes;
  work.whole_reads = cost.whole_reads;
  work.residency = Residency(work.reads, work.writes, devices);
  return work;
}

size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run) {
  const Ordinal& ordinal = stream.ordinal();
  if (ordinal.devices.size() == 1) return 0;
  const int of_shard = shard_position();
  const size_t position =
      of_shard >= 0 ? of_shard
                    : choose_position(work_of(cost, ordinal), stream, run.decision);
  run.device_id = ordinal.devices[position]->id;
  return position;
}

}  // namespace xpurt
