// The number of oneDNN primitives that are kept.
#pragma once

#include <cstddef>

#include "device/device.h"

namespace xpurt {

// Per device; the least recently used plans are removed first. A plan is a primitive
// and the reorders around it, with their code: some 100 KB.
constexpr size_t kMaxOnednnPlans = 1024;

size_t onednn_plans_kept(const PhysicalDevice& device);

}  // namespace xpurt
