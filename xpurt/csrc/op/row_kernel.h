// The interface of xpurt's kernels: one row per op, chosen per call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

#include "op/cost_table.h"

namespace xpurt {

class RowCall;
class RowCallStorage;
struct RowRun;

// The order of magnitude of oneDNN's time to create a primitive, in microseconds.
constexpr double kPrimitiveUs = 1e3;

// What is known of a row's costs before a call is parsed.
struct RowPrior {
  int row = 0;  // the row's number
  CostClass cost_class = 0;
  // Whether OpCost::elements is the number of elements of the largest operand. Then the
  // call need not be parsed for it.
  bool by_operands = true;
  // Whether the row consists of other ops, each of which chooses its own device.
  bool in_parts = false;
  // Microseconds of preparation at the first call; negative: the build of a kernel.
  double build_us = -1;
};

struct RowKernel {
  explicit RowKernel(RowPrior p) : prior(p) {}
  virtual ~RowKernel() = default;
  const RowPrior prior;

  // Reads the arguments at the end of the stack into a call that lives in `memory`.
  // nullptr if the row cannot compute this call, because of its dtypes, layouts, sizes
  // or devices.
  virtual RowCall* parse(const torch::jit::Stack& stack,
                         RowCallStorage& memory) const = 0;
  // Whether a run that threw before its kernels were built has left the arguments
  // unchanged.
  virtual bool is_repeatable() const { return true; }
};

// Rows live as long as the process. nullptr removes the row.
void set_row(const c10::OperatorHandle& op, const RowKernel* row);

enum class KernelPolicy {
  automatic,  // by cost: see decision.h
  sycl,       // the row, if it accepts the call
  native,     // never a row
};
void set_kernel_policy(KernelPolicy policy);
KernelPolicy kernel_policy();

}  // namespace xpurt
