#include "host/errors.h"

#include <torch/csrc/Exceptions.h>

namespace xpurt {
namespace {

// PyTorch gets the Python type of such an exception when the exception crosses into
// Python, from any thread and through any op.
struct NamedError final : torch::PyTorchError {
  NamedError(const char* name, std::string message)
      : PyTorchError(std::move(message)), name_(name) {}

  PyObject* python_type() override {
    // Already in sys.modules: the package imports it before this library.
    PyObject* module = PyImport_ImportModule("xpurt.errors");
    PyObject* type =
        module != nullptr ? PyObject_GetAttrString(module, name_) : nullptr;
    Py_XDECREF(module);
    if (type == nullptr) {
      PyErr_Clear();
      return PyExc_RuntimeError;
    }
    Py_DECREF(type);  // the module keeps it
    return type;
  }

 private:
  const char* name_;
};

}  // namespace

void throw_mapping_error(std::string message) {
  throw NamedError("MappingError", std::move(message));
}

void throw_fallback_error(std::string message) {
  throw NamedError("FallbackError", std::move(message));
}

}  // namespace xpurt
