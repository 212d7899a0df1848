// What ops are expected to cost on each tier of a device, as it was measured.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xpurt {

// How the operands of a call lie in memory.
enum class OperandLayout : uint8_t {
  alike,       // dense, in one order and of one size, but for those of one element
  mixed,       // dense, in one order, of several sizes
  strided,     // not dense, or in different orders
  across,      // dense, and the op runs along a dimension that is not the innermost
  long_lines,  // dense, and the op runs along the innermost, in lines above kLongLine
};
constexpr int kLayouts = 5;

// Kernels of ours have a group of threads share a line, so they gain with its length,
// in elements, and PyTorch's hardly do. Measured on lines of 32 to 4,096: most of what
// is gained is gained between 128 and 1,024.
constexpr int64_t kLongLine = 512;

// Ops that are measured by one of them. The same name gives the same number.
using CostClass = int;
CostClass cost_class(const std::string& name);

// Microseconds until an op has finished.
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
  std::vector<CostPoint> points;  // at least one; elements grow
};

// Replaces what is known of the device at `position` of xpu:index; what was decided by
// that holds no longer. Opens no placement: see Note [Opening the contexts].
void set_cost_curves(c10::DeviceIndex index, size_t position,
                     std::vector<CostCurve> curves);

// Changes with the curves. Whoever decides by them compares it.
uint64_t cost_table_version() noexcept;

// Between the points of the curve, a power law; beyond the last one, proportional to
// the elements. Where a type or layout was not measured, one like it is taken; nothing
// if the class was not. `device_id`: of a device of the installed placement.
std::optional<TierCosts> expected_costs(int device_id, CostClass of, char letter,
                                        OperandLayout layout, double elements);

}  // namespace xpurt
