// The expected cost of ops on each tier of a device, from measurements.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xpurt {

// How the operands of a call are laid out in memory.
enum class OperandLayout : uint8_t {
  alike,       // dense, in one order, of one size; one-element operands ignored
  mixed,       // dense, in one order, of several sizes
  strided,     // not dense, or in different orders
  across,      // dense; the op runs along a dimension that is not the innermost
  long_lines,  // dense; the op runs along the innermost, in lines above kLongLine
};
constexpr int kLayouts = 5;

// In elements. In xpurt's kernels a group of threads shares a line, so they gain with
// its length; PyTorch's kernels hardly do. Measured on lines of 32 to 4,096: most of
// the gain comes between 128 and 1,024.
constexpr int64_t kLongLine = 512;

// Ops of which one is measured for all. Equal names give equal numbers.
using CostClass = int;
CostClass cost_class(const std::string& name);

// Microseconds from the call until an op has finished.
struct TierCosts {
  double native = 0;  // PyTorch's CPU kernel, called on an idle stream
  double kernel = 0;  // a row's kernel, submitted to an idle stream and waited for
};

struct CostPoint {
  double elements = 1;
  TierCosts us;
};
struct CostCurve {
  CostClass cost_class = 0;
  char letter = 'f';  // of the element type; see element_type.h
  OperandLayout layout = OperandLayout::alike;
  std::vector<CostPoint> points;  // at least one; by increasing elements
};

// Replaces the curves of the device at `position` of xpu:index, and invalidates
// decisions made by the earlier curves. Opens no placement: see Note [Opening the
// contexts].
void set_cost_curves(c10::DeviceIndex index, size_t position,
                     std::vector<CostCurve> curves);

// Changes with the curves. Code that caches decisions compares it.
uint64_t cost_table_version() noexcept;

// Between the points of a curve, a power law; beyond the last point, proportional to
// the elements. For a type or layout that was not measured, the most similar one is
// used. Empty if the class was not measured. `device_id`: of a device of the installed
// placement.
std::optional<TierCosts> expected_costs(int device_id, CostClass of, char letter,
                                        OperandLayout layout, double elements);

}  // namespace xpurt
