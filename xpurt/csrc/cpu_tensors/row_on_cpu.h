// One run of a row on CPU tensors.
#pragma once

#include <ATen/core/stack.h>

#include <string>

#include "op/op_record.h"

namespace xpurt {

// Runs the op's row on the arguments at the end of the stack, which are CPU tensors
// that DeviceCall accepts, and replaces them by the results. False if PyTorch's kernel
// has to run the call: there is no row, it does not accept the call, or it raised an
// error and left the arguments unchanged. `index`: see ordinal_of_host(). `why`: for
// xpurt.explain.
bool run_row_on_cpu(OpRecord& record, c10::DeviceIndex index, const std::string& why,
                    torch::jit::Stack* stack);

}  // namespace xpurt
