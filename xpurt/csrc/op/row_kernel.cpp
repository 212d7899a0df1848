#include "op/row_kernel.h"

#include <atomic>

#include "op/op_record.h"

namespace xpurt {
namespace {

std::atomic<KernelPolicy> policy_in_force{KernelPolicy::automatic};

}  // namespace

void set_row(const c10::OperatorHandle& op, const RowKernel* row) {
  op_record(op).row = row;
}

void set_kernel_policy(KernelPolicy policy) {
  policy_in_force = policy;
}

KernelPolicy kernel_policy() {
  return policy_in_force.load(std::memory_order_relaxed);
}

}  // namespace xpurt
