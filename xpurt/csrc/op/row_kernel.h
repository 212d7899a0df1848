// How an op gets a kernel of ours: one row per op, chosen per call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

#include "op/cost_table.h"

namespace xpurt {

class RowCall;
class RowCallStorage;
struct RowRun;

// What oneDNN takes to make a primitive, in microseconds: the order of magnitude.
constexpr double kPrimitiveUs = 1e3;

// What is known of a row's costs before it is asked.
struct RowPrior {
  int row = 0;  // its number
  CostClass cost_class = 0;
  // Whether OpCost::elements is that of the largest operand; then the row need not be
  // asked.
  bool by_operands = true;
  // Whether the row is other ops, each of which chooses a device for itself.
  bool in_parts = false;
  // Microseconds to get ready for the first call; negative: those of a kernel's build.
  double build_us = -1;
};

struct RowKernel {
  explicit RowKernel(RowPrior p) : prior(p) {}
  virtual ~RowKernel() = default;
  const RowPrior prior;

  // Reads the arguments at the end of the stack into a call that lives in `memory`.
  // nullptr: the row can't compute this call, for its dtypes, layouts, sizes or
  // devices.
  virtual RowCall* parse(const torch::jit::Stack& stack,
                         RowCallStorage& memory) const = 0;
  // Whether a run that threw before its kernels were built has left the arguments as
  // they were.
  virtual bool is_repeatable() const { return true; }
};

// Rows live as long as the process. nullptr takes the row away.
void set_row(const c10::OperatorHandle& op, const RowKernel* row);

enum class KernelPolicy {
  automatic,  // by cost: see tier_choice.h
  sycl,       // a row wherever it accepts
  native,     // never a row
};
void set_kernel_policy(KernelPolicy policy);
KernelPolicy kernel_policy();

}  // namespace xpurt
