// Guards of the functions by which PyTorch gives Python code the address of memory.
#include <ATen/dlpack.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Storage.h>
#include <torch/csrc/autograd/python_variable.h>

#include <array>
#include <atomic>
#include <utility>

#include "host/torch_version.h"
#include "memory/known_storages.h"
#include "memory/replica/replica.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Note [Raw pointer guards]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// Other code may read and write at an address without xpurt's knowledge. Under AUTO
// over devices that share no memory, the bytes there may be stale. So before an address
// is given to Python code, its storage is brought home, and stays there: see escape().
// With lazy copies, such a storage is never copied lazily.
//
// PyTorch gives addresses by few functions. Each has a PyMethodDef, to which the
// attribute of the type, the inherited attribute of a subclass, bound methods and
// references that were taken earlier all lead. The guard replaces the C function in
// that PyMethodDef. DLPack's exchange from C to C is a table of functions, of which
// PyTorch 2.14 has another one for read-only views. They are changed in the same way: a
// consumer may have taken the address of a table earlier. Rejected: to set attributes
// of the Python classes. torch._C.TensorBase.data_ptr(x), and everything that was
// looked up before, passes by them, and the types in C cannot be changed by setattr.
//
// Not covered: C++ code that calls data_ptr<T>() outside of an op. It is inlined into
// that code. Kernels of ops are covered by Note [Foreign kernels].
struct GuardedFunction {
  const char* owner;  // a type in torch._C; nullptr for a function of that module
  const char* name;
};
constexpr std::array kGuarded{
    GuardedFunction{"TensorBase", "data_ptr"},
    GuardedFunction{"TensorBase", "const_data_ptr"},
    GuardedFunction{"StorageBase", "data_ptr"},
    GuardedFunction{nullptr, "_data_address"},
    GuardedFunction{nullptr, "_to_dlpack"},
    GuardedFunction{nullptr, "_to_dlpack_versioned"},
};

// PyTorch's own functions. They stay here when the guards are removed: a call may be
// under way.
std::array<PyCFunction, kGuarded.size()> originals{};
struct Exchange {
  const char* name;  // of the function in torch._C that returns the table
  DLPackManagedTensorFromPyObjectNoSync managed = nullptr;
  DLPackDLTensorFromPyObjectNoSync unmanaged = nullptr;
};
std::array exchanges{
    Exchange{"_dlpack_exchange_api"},
#if XPURT_TORCH_AT_LEAST(2, 14)
    Exchange{"_const_dlpack_exchange_api"},
#endif
};

bool is_guarding = false;  // under the GIL
std::atomic<bool> never_lazily_from_now{
    false};  // known storages are never copied lazily

// Called before the address of the object's memory is given away. Does nothing for an
// object without a storage.
void address_leaves(PyObject* subject) {
  c10::Storage storage;
  if (THPVariable_Check(subject)) {
    const at::Tensor& tensor = THPVariable_Unpack(subject);
    if (!tensor.defined() || !tensor.has_storage()) return;
    storage = tensor.storage();
  } else if (THPStorage_Check(subject)) {
    storage = THPStorage_Unpack(subject);
  }
  if (!storage) return;
  const bool on_xpu = storage.device_type() == c10::DeviceType::XPU;
  if (on_xpu) escape(*storage.unsafeGetStorageImpl());
  if (never_lazily_from_now && (on_xpu || storage.device_type() == c10::kCPU)) {
    never_copy_lazily(*storage.unsafeGetStorageImpl());
  }
}

// The guards, by the calling conventions of CPython.
template <size_t I>
PyObject* without_arguments(PyObject* self, PyObject* unused) {
  HANDLE_TH_ERRORS
  address_leaves(self);
  return originals[I](self, unused);
  END_HANDLE_TH_ERRORS
}

template <size_t I>
PyObject* of_one_argument(PyObject* self, PyObject* argument) {
  HANDLE_TH_ERRORS
  address_leaves(argument);
  return originals[I](self, argument);
  END_HANDLE_TH_ERRORS
}

template <size_t I>
PyObject* of_keywords(PyObject* self, PyObject* args, PyObject* keywords) {
  HANDLE_TH_ERRORS
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    address_leaves(PyTuple_GET_ITEM(args, i));
  }
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0;
       keywords != nullptr && PyDict_Next(keywords, &at, &key, &value);) {
    address_leaves(value);
  }
  const auto original =
      reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(originals[I]));
  return original(self, args, keywords);
  END_HANDLE_TH_ERRORS
}

template <size_t I>
PyObject* of_vector(PyObject* self, PyObject* const* args, Py_ssize_t count,
                    PyObject* names) {
  HANDLE_TH_ERRORS
  const Py_ssize_t all = count + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
  for (Py_ssize_t i = 0; i < all; ++i) address_leaves(args[i]);
  const auto original =
      reinterpret_cast<PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t,
                                     PyObject*)>(reinterpret_cast<void*>(originals[I]));
  return original(self, args, count, names);
  END_HANDLE_TH_ERRORS
}

template <typename Function>
PyCFunction as_function(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

template <size_t I>
PyCFunction guard_for(int flags) {
  switch (flags) {
    case METH_NOARGS:
      return &without_arguments<I>;
    case METH_O:
      return &of_one_argument<I>;
    case METH_VARARGS | METH_KEYWORDS:
      return as_function(&of_keywords<I>);
    case METH_FASTCALL | METH_KEYWORDS:
      return as_function(&of_vector<I>);
    default:
      return nullptr;
  }
}

// The PyMethodDef that all references to the function lead to. nullptr if it is no
// function in C.
PyMethodDef* find_method(const py::module_& torch, const GuardedFunction& guarded) {
  if (guarded.owner == nullptr) {
    const py::object found = torch.attr(guarded.name);
    if (!PyCFunction_Check(found.ptr())) return nullptr;
    return reinterpret_cast<PyCFunctionObject*>(found.ptr())->m_ml;
  }
  const py::object owner = torch.attr(guarded.owner);
  const py::object found = py::getattr(owner, guarded.name);
  if (!Py_IS_TYPE(found.ptr(), &PyMethodDescr_Type)) return nullptr;
  return reinterpret_cast<PyMethodDescrObject*>(found.ptr())->d_method;
}

template <size_t I>
void guard_function(const py::module_& torch, bool on) {
  PyMethodDef* method = find_method(torch, kGuarded[I]);
  const PyCFunction guard =
      method == nullptr ? nullptr : guard_for<I>(method->ml_flags);
  TORCH_CHECK(guard != nullptr, "torch._C: ", kGuarded[I].name,
              " is not the function that xpurt was written for. Install the version of "
              "PyTorch that this xpurt belongs to.");
  if (on) originals[I] = method->ml_meth;
  method->ml_meth = on ? guard : originals[I];
}

template <size_t I>
int guarded_managed(void* object, DLManagedTensorVersioned** out) {
  HANDLE_TH_ERRORS
  address_leaves(static_cast<PyObject*>(object));
  return exchanges[I].managed(object, out);
  END_HANDLE_TH_ERRORS_RET(-1)
}

template <size_t I>
int guarded_unmanaged(void* object, DLTensor* out) {
  HANDLE_TH_ERRORS
  address_leaves(static_cast<PyObject*>(object));
  return exchanges[I].unmanaged(object, out);
  END_HANDLE_TH_ERRORS_RET(-1)
}

template <size_t I>
void guard_exchange(const py::module_& torch, bool on) {
  Exchange& original = exchanges[I];
  const py::object capsule = torch.attr(original.name)();
  auto* api = static_cast<DLPackExchangeAPI*>(
      PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (api == nullptr) throw py::error_already_set();
  if (on) {
    original.managed = api->managed_tensor_from_py_object_no_sync;
    original.unmanaged = api->dltensor_from_py_object_no_sync;
  }
  api->managed_tensor_from_py_object_no_sync =
      on ? &guarded_managed<I> : original.managed;
  api->dltensor_from_py_object_no_sync =
      on ? &guarded_unmanaged<I> : original.unmanaged;
}

void guard_raw_pointers(bool on, bool never_lazily) {
  never_lazily_from_now = never_lazily;
  if (std::exchange(is_guarding, on) == on) return;
  const py::module_ torch = py::module_::import("torch._C");
  [&]<size_t... I>(std::index_sequence<I...>) {
    (guard_function<I>(torch, on), ...);
  }(std::make_index_sequence<kGuarded.size()>());
  [&]<size_t... I>(std::index_sequence<I...>) {
    (guard_exchange<I>(torch, on), ...);
  }(std::make_index_sequence<exchanges.size()>());
}

}  // namespace

void bind_raw_pointers(py::module_& m) {
  m.def("guard_raw_pointers", &guard_raw_pointers, py::arg("on"),
        py::arg("never_lazily"));
  m.def("escape", [](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_xpu() || !tensor.has_storage()) return;
    escape(*tensor.storage().unsafeGetStorageImpl());
  });
}

}  // namespace xpurt
