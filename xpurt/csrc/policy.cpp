#include "policy.h"

#include <algorithm>

#include "device_override.h"
#include "element_type.h"
#include "placing.h"

namespace xpurt {

void OpCost::add(const at::TensorBase& tensor) {
  bytes += static_cast<int64_t>(tensor.nbytes());
  needs_fp64 = needs_fp64 || is_double(tensor.scalar_type());
}

void OpCost::read(const at::TensorBase& tensor) {
  add(tensor);
  reads.push_back(tensor.storage().unsafeGetStorageImpl());
}

void OpCost::write(const at::TensorBase& tensor) {
  add(tensor);
  writes.push_back(tensor.storage().unsafeGetStorageImpl());
}

bool can_run(const Ordinal& ordinal, const OpCost& cost) {
  // Home is where an op runs that may not leave it.
  if (!ordinal.home_device().is_opencl) return false;
  const auto& devices = ordinal.devices;
  return !cost.needs_fp64 ||
         std::any_of(devices.begin(), devices.end(),
                     [](const auto* d) { return d->is_opencl && d->has_fp64; });
}

Work work_of(const OpCost& cost) {
  Work work;
  work.flops = cost.flops * static_cast<double>(cost.elements);
  work.bytes = static_cast<double>(cost.bytes);
  work.needs_fp64 = cost.needs_fp64;
  work.launches = cost.launches;
  work.reads = cost.reads;
  work.writes = cost.writes;
  return work;
}

size_t choose_device(const OpCost& cost, Stream& stream, RowRun& run) {
  const Ordinal& ordinal = stream.ordinal();
  if (ordinal.devices.size() == 1) return 0;
  const int of_piece = piece_position();
  const size_t position =
      of_piece >= 0 ? of_piece : choose_position(work_of(cost), stream, run.decision);
  run.device_id = ordinal.devices[position]->id;
  return position;
}

}  // namespace xpurt
