// The Python module, in plain C, and the fallback of ops.
#include <ATen/core/dispatch/Dispatcher.h>
#include <Python.h>
#include <sycl/version.hpp>
#include <torch/library.h>

#include <atomic>
#include <string>

#include "first_use/first_use.h"
#include "host/fallbacks.h"

namespace xpurt {
namespace {

std::atomic<bool> aside{false};
std::atomic<PyObject*> loader{nullptr};  // leaked: called until the process ends

// Those of the extension; null until it is loaded. See Note [One registration of
// fallbacks].
std::atomic<const Fallbacks*> of_extension{nullptr};

template <Fallback* Fallbacks::* Layout>
void load_and_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  if (const Fallbacks* const loaded = of_extension) {
    (loaded->*Layout)(op, keys, stack);
    return;
  }
  // The extension may have a kernel of the op itself.
  XPURT_CHECK_LOADED(load() && of_extension != nullptr);
  op.redispatchBoxed(keys, stack);
}

template <Fallback* Fallbacks::* Layout>
void install_fallback(c10::DispatchKey key) {
  auto* const leaked =
      new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  leaked->fallback(torch::CppFunction::makeFromBoxedFunction<&load_and_call<Layout>>());
}

void install_fallbacks() {
  install_fallback<&Fallbacks::strided>(kStridedKey);
  for (const c10::DispatchKey key : kSpecialKeys) {
    install_fallback<&Fallbacks::special>(key);
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

PyObject* call_fallbacks(PyObject*, PyObject* capsule) {
  const void* const given = PyCapsule_GetPointer(capsule, kFallbacksCapsule);
  if (given == nullptr) return nullptr;
  of_extension = static_cast<const Fallbacks*>(given);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"install", install, METH_O, "Installs the stand-ins. Called with the loader."},
    {"step_aside", py_step_aside, METH_NOARGS, "Called before xpurt is loaded."},
    {"call_fallbacks", call_fallbacks, METH_O, "Called with those of the extension."},
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
