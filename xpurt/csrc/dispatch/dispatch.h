// The common entry of ops on xpu.
#pragma once

#include "dispatch/row_choice.h"
#include "op/op_record.h"

namespace xpurt {

// Runs an op whose arguments are at the end of the stack. Checks the devices of the
// operands, then runs the op's row, or PyTorch's CPU kernel on the same bytes or on
// copies.
void run_op(OpRecord& record, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// The same for operands that are known to belong to xpu:index, the current device.
void run_op_at(OpRecord& record, c10::DeviceIndex index, c10::DispatchKeySet keys,
               torch::jit::Stack* stack);

// The same for operands that an unboxed op has inspected: they are not inspected again.
void run_inspected(OpRecord& record, c10::DeviceIndex index,
                   const InspectedCall& inspected, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack);

}  // namespace xpurt
