// A function of Python as the derivative of an op on one device type.
#pragma once

#include <c10/core/DeviceType.h>
#include <pybind11/pybind11.h>

#include <string>

namespace xpurt {

// From now on autograd calls `function` for the op `op`, "aten::mish", on tensors of
// the type. Kept for the process. torch.library does the same, but PyTorch does not
// parse the names of the Autograd keys of all types.
void register_derivative(const std::string& op, c10::DeviceType type,
                         const pybind11::function& function);

}  // namespace xpurt
