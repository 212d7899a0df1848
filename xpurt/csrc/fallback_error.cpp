#include "fallback_error.h"

#include <torch/csrc/Exceptions.h>

namespace xpurt {
namespace {

// PyTorch turns it into a Python exception of the type it names.
struct FallbackError final : torch::PyTorchError {
  using PyTorchError::PyTorchError;

  // Called with the GIL held.
  PyObject* python_type() override {
    static PyObject* type = nullptr;
    if (type == nullptr) {
      PyObject* module = PyImport_ImportModule("xpurt.errors");
      if (module != nullptr) type = PyObject_GetAttrString(module, "FallbackError");
      Py_XDECREF(module);
      PyErr_Clear();
    }
    return type != nullptr ? type : PyExc_RuntimeError;
  }
};

}  // namespace

void throw_fallback_error(const std::string& message) {
  throw FallbackError(message);
}

}  // namespace xpurt
