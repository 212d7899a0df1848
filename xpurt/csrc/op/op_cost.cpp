#include "op/op_cost.h"

#include <algorithm>

#include "op/element_type.h"

namespace xpurt {

void OpCost::add(const at::TensorBase& tensor) {
  bytes += static_cast<int64_t>(tensor.nbytes());
  needs_fp64 = needs_fp64 || is_double(tensor.scalar_type());
}

void OpCost::read(const at::TensorBase& tensor) {
  add(tensor);
  reads.push_back(tensor.storage().unsafeGetStorageImpl());
}

void OpCost::read_whole(const at::TensorBase& tensor) {
  whole_reads |= uint64_t{1} << reads.size();
  read(tensor);
}

void OpCost::write(const at::TensorBase& tensor) {
  add(tensor);
  writes.push_back(tensor.storage().unsafeGetStorageImpl());
}

bool has_fp64(const Ordinal& ordinal) {
  return std::ranges::any_of(ordinal.devices,
                             [](const auto* d) { return d->is_opencl && d->has_fp64; });
}

bool can_run(const Ordinal& ordinal, const OpCost& cost) {
  // An op that may not leave home runs there.
  if (!ordinal.home_device().is_opencl) return false;
  return !cost.needs_fp64 || has_fp64(ordinal);
}

}  // namespace xpurt
