// Ops in types for which PyTorch has GPU kernels but no CPU kernels.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <utility>
#include <vector>

#include "op/op_record.h"

namespace xpurt {

// A row of kernels/rows/wider_types.py: the wider types that an op is computed in, by
// the type of its operands.
struct WiderRow {
  std::string name;  // "aten::exp": for all overloads, in-place ones included
  std::vector<std::pair<c10::ScalarType, c10::ScalarType>> types;  // type, wider type
  // The CPU supports these types, so the row is only for devices whose memory the host
  // cannot read.
  bool on_cpu = false;
  bool powers_of_two = false;  // a Fourier transform, of such lengths only
};

// Called once per process, before the first call of an op.
void add_wider_types(const std::vector<WiderRow>& rows);

// Runs a call if an operand or a dtype argument is of such a type; otherwise returns
// false. See Note [Types that the CPU lacks].
bool run_in_wider_type(const OpRecord& record, c10::DeviceIndex index,
                       torch::jit::Stack* stack);

}  // namespace xpurt
