#include "schedule/policy.h"

#include "memory/replica/device_override.h"
#include "schedule/candidates.h"
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

namespace {

bool may_run_at(const Work& work, const Ordinal& devices, int position) {
  return position >= 0 && static_cast<size_t>(position) < devices.devices.size() &&
         !must_run_at_home(work) && (positions_for(work, devices) >> position & 1) != 0;
}

}  // namespace

size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run, int planned) {
  const Ordinal& ordinal = stream.ordinal();
  if (ordinal.devices.size() == 1) return 0;
  const int of_shard = shard_position();
  size_t position = of_shard;
  if (of_shard < 0) {
    const Work work = work_of(cost, ordinal);
    position = may_run_at(work, ordinal, planned)
                   ? planned
                   : choose_position(work, stream, run.decision);
  }
  run.device_id = ordinal.devices[position]->id;
  return position;
}

}  // namespace xpurt
