// The Python module, in plain C, and the fallback of ops.
#include <ATen/core/dispatch/Dispatcher.h>
#include <Python.h>
#include <sycl/version.hpp>
#include <torch/library.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "first_use/first_use.h"

namespace xpurt {
namespace {

using c10::DispatchKey;

std::atomic<bool> aside{false};
std::atomic<PyObject*> loader{nullptr};  // leaked: called until the process ends

// Dropped before xpurt registers its own fallbacks: a key has one.
std::vector<std::unique_ptr<torch::Library>>& fallbacks() {
  static auto* const leaked = new std::vector<std::unique_ptr<torch::Library>>;
  return *leaked;
}

void load_and_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  XPURT_CHECK_LOADED(load());
  op.redispatchBoxed(keys, stack);
}

void install_fallbacks() {
  for (const DispatchKey key :
       {DispatchKey::XPU, DispatchKey::SparseXPU, DispatchKey::SparseCsrXPU,
        DispatchKey::QuantizedXPU, DispatchKey::NestedTensorXPU}) {
    auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "_", key,
                                                    __FILE__, __LINE__);
    library->fallback(torch::CppFunction::makeFromBoxedFunction<&load_and_call>());
    fallbacks().push_back(std::move(library));
  }
}

template <typename Function>
PyObject* checked(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* install(PyObject*, PyObject* function) {
  Py_INCREF(function);
  loader = function;
  return checked([] {
    install_hooks();
    install_guard();
    install_allocators();
    install_fallbacks();
  });
}

PyObject* py_step_aside(PyObject*, PyObject*) {
  return checked([] { step_aside(); });
}

PyMethodDef methods[] = {
    {"install", install, METH_O, "Installs the stand-ins. Called with the loader."},
    {"step_aside", py_step_aside, METH_NOARGS, "Called before xpurt is loaded."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_first_use",
    nullptr,
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

bool load() {
  PyObject* const function = loader.load();
  if (function == nullptr || !Py_IsInitialized()) return false;
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* const result = PyObject_CallNoArgs(function);
  const bool loaded = result == Py_True;
  if (result == nullptr) PyErr_WriteUnraisable(function);
  Py_XDECREF(result);
  PyGILState_Release(gil);
  return loaded;
}

void step_aside() {
  aside = true;
  fallbacks().clear();
}

bool has_stepped_aside() {
  return aside;
}

}  // namespace xpurt

PyMODINIT_FUNC PyInit__first_use() {
  PyObject* const module = PyModule_Create(&xpurt::definition);
  if (module == nullptr) return nullptr;
  const std::string version = std::to_string(__SYCL_COMPILER_VERSION);
  if (PyModule_AddStringConstant(module, "sycl_version", version.c_str()) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
