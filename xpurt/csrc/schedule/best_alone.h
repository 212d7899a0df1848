// Holds a program to the best device alone while that is faster: see Note [Baseline].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/device.h"
#include "schedule/planning/baseline.h"

namespace xpurt {

// The position of the only device that runs the ordinal's work; none if all do.
std::optional<size_t> held_alone(const Ordinal& devices) noexcept;

// Whether that is so until the next comparison. Then the work needs no device but that
// one, and not every op has to be added.
bool is_settled_alone(const Ordinal& devices) noexcept;

// Adds a long op of a thread that prefers no device. `best`: the position of the device
// that is best alone. Under the scheduler's mutex.
void compare_with_baseline(const Ordinal& devices, size_t best, uint64_t kind,
                           double alone_us, bool elsewhere, double now);

// For tests: holds the ordinal's work to one position, or ends that.
void hold_alone(const Ordinal& devices, std::optional<size_t> position);

}  // namespace xpurt
