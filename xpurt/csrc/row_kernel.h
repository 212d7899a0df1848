// How an op gets a kernel of ours: one row per op, chosen per call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

#include "tier.h"

namespace xpurt {

struct RowKernel {
  virtual ~RowKernel() = default;
  // Whether the row can compute this call: dtypes, layouts, sizes, devices.
  virtual bool accepts(const torch::jit::Stack& stack) const = 0;
  // Whether it is expected to be faster here than the native kernel. Asked under
  // the policy `automatic`, on devices whose memory the host can use.
  virtual bool prefers(const torch::jit::Stack& stack) const = 0;
  // Where a CPU is the only device, prefers() is false for operands all of which have
  // fewer elements than this.
  virtual int64_t crossover() const = 0;
  // Replaces the arguments at the end of the stack by the results.
  virtual void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) const = 0;
  virtual Tier tier() const = 0;
};

// Rows live as long as the process. nullptr takes the row away.
void set_row(const c10::OperatorHandle& op, const RowKernel* row);
const RowKernel* find_row(const c10::OperatorHandle& op);

enum class KernelPolicy {
  automatic,  // the row's own advice
  sycl,       // a row wherever it accepts
  native,     // never a row
};
void set_kernel_policy(KernelPolicy policy);
KernelPolicy kernel_policy();

// A row that ran elsewhere than on the ordinal's home device says so while it
// runs, for the report.
void note_device(int physical_device_id);

}  // namespace xpurt
