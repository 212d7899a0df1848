// IndexErrors of kernels for Python.
#pragma once

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

namespace xpurt {

// A wait throws IndexError for a kernel's fault; pybind11 would make it a RuntimeError.
// For each module by itself.
inline void translate_index_errors() {
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const c10::IndexError& error) {
      PyErr_SetString(PyExc_IndexError, error.what_without_backtrace());
    }
  });
}

}  // namespace xpurt
