// Kernels that a driver refuses to build, under the policy `automatic`.
#pragma once

#include <c10/core/ScalarType.h>

#include <mutex>
#include <set>
#include <utility>

namespace xpurt {

struct OpRecord;
struct RowKernel;
struct PhysicalDevice;

// What an op is not asked for again: elements of a type, on a device.
struct Refusals {
  std::mutex mutex;
  std::set<std::pair<int, c10::ScalarType>> known;
};

bool is_refused(const OpRecord& record, int device_id, c10::ScalarType type);

// Remembers that a driver refused the build that this thread tried last, and warns of
// it, once per row. `home`: where the op is computed if another device refuses.
void remember_refusal(OpRecord& record, const RowKernel& row, c10::ScalarType type,
                      const PhysicalDevice& home);

}  // namespace xpurt
