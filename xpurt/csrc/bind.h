// The parts of the Python face; module.cpp calls each once.
#pragma once

#include <pybind11/pybind11.h>

namespace xpurt {

void bind_share(pybind11::module_& m);
void bind_kernels(pybind11::module_& m);

}  // namespace xpurt
