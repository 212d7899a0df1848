// Kernels that a driver refuses to build, under the policy `automatic`.
#pragma once

#include <c10/core/ScalarType.h>

#include <set>
#include <utility>

#include "host/mutex.h"

namespace xpurt {

struct OpRecord;
struct RowKernel;
struct PhysicalDevice;

// The (device id, type) pairs for which the build of an op's kernel is not tried again.
struct Refusals {
  Mutex mutex{Rank::refusals};
  std::set<std::pair<int, c10::ScalarType>> known;
};

bool is_refused(const OpRecord& record, int device_id, c10::ScalarType type);

// Records that a driver refused this thread's last build, and warns once per row.
// `home`: the device that computes the op if another device refuses it.
void remember_refusal(OpRecord& record, const RowKernel& row, c10::ScalarType type,
                      const PhysicalDevice& home);

}  // namespace xpurt
