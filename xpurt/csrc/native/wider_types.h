// Ops in types that GPUs have a kernel for and PyTorch's CPU has not.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <utility>
#include <vector>

#include "op/op_record.h"

namespace xpurt {

// A row of kernels/rows/wider_types.py: what an op is computed in, by the type of its
// operands.
struct WiderRow {
  std::string name;  // "aten::exp": of all overloads, in place too
  std::vector<std::pair<c10::ScalarType, c10::ScalarType>> types;
  bool on_cpu = false;  // the CPU has these types: for devices that it cannot read
};

// Once per process, before the first call.
void add_wider_types(const std::vector<WiderRow>& rows);

// Runs a call whose operands are of such a type; false if they are not. See Note [Types
// that the CPU lacks].
bool run_in_wider_type(const OpRecord& record, c10::DeviceIndex index,
                       torch::jit::Stack* stack);

}  // namespace xpurt
