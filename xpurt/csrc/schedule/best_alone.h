// Holds a program to the best device alone while that is faster: see Note [Baseline].
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "device/device.h"
#include "stream/stream.h"

namespace xpurt {

// The position of the only device that runs the ordinal's work; none if all do.
std::optional<size_t> held_alone(const Ordinal& devices) noexcept;

// Whether that is so until the next comparison. Then the work needs no device but that
// one, and not every op has to be added.
bool is_settled_alone(const Ordinal& devices) noexcept;

// The following are called under the scheduler's mutex.

// Whether the program is being compared.
bool is_comparing(const Ordinal& devices);

// Whether the time of the whole program is being measured. Trials would count as time
// of the arm.
bool is_timing_program(const Ordinal& devices);

// The position of the device that the program is compared with. `best`: that which is
// best alone by now. It is the same from the begin of a comparison to the next one.
size_t baseline_position(const Ordinal& devices, size_t best);

// Adds a long op of a thread that prefers no device.
struct LongOp {
  uint64_t kind;
  double alone_us;  // expected on the device of the baseline
  bool elsewhere;   // another device has a part in it
  double now_us;
};
void compare_with_baseline(const Stream& stream, size_t best, const LongOp& op);

// Records that a long op has returned to the host.
void record_return(const Ordinal& devices, double now);

// For tests: holds the ordinal's work to one position, or ends that.
void hold_alone(const Ordinal& devices, std::optional<size_t> position);

// For tests: the microseconds without work that were left out of the comparison.
double left_out_us(const Ordinal& devices);

}  // namespace xpurt
