// Python code that C++ calls.
#pragma once

#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>

namespace xpurt {

// Runs Python code for callers in C++. A Python exception propagates through PyTorch as
// python_error.
template <typename Body>
auto from_python(Body body) {
  try {
    return body();
  } catch (pybind11::error_already_set& error) {
    error.restore();
    python_error carrier;
    carrier.persist();
    throw carrier;
  }
}

}  // namespace xpurt
