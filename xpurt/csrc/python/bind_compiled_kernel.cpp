// The kernels of torch.compile's sycl form as Python functions.
#include <ATen/EmptyTensor.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "device/device_scope.h"
#include "host/gil.h"
#include "memory/allocator.h"
#include "python/bind.h"
#include "rows/compiled_kernel.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Note [Launchers of compiled kernels]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A compiled program calls some dozens of kernels from Python. The time of a call is
// part of each kernel's time, so a launcher is a C function whose `self` is the kernel:
// Python passes the arguments as an array, without a tuple. pybind11 takes about a
// microsecond more per call.
struct Launcher {
  CompiledKernel kernel;
  std::vector<size_t> sizes;  // empty: the last three arguments are the sizes
};

constexpr const char* kLauncher = "xpurt.launcher";
constexpr size_t kSizes = 3;

size_t as_size(PyObject* number) {
  const long long size = PyLong_AsLongLong(number);
  if (size == -1 && PyErr_Occurred() != nullptr) throw python_error();
  TORCH_CHECK_VALUE(size >= 0, "a size is negative: ", size);
  return static_cast<size_t>(size);
}

CompiledKernelArgument as_argument(PyObject* given, char letter) {
  CompiledKernelArgument argument;
  if (THPVariable_Check(given)) {
    argument.tensor = &THPVariable_Unpack(given);
    return argument;
  }
  if (letter == 'i') {
    argument.integer = PyLong_AsLongLong(given);
  } else {
    argument.real = PyFloat_AsDouble(given);
  }
  if (PyErr_Occurred() != nullptr) throw python_error();
  return argument;
}

PyObject* launch(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  auto& launcher = *static_cast<Launcher*>(PyCapsule_GetPointer(self, kLauncher));
  const std::string& letters = launcher.kernel.spec().arguments;
  const size_t wanted = letters.size() + (launcher.sizes.empty() ? kSizes : 0);
  TORCH_CHECK_TYPE(static_cast<size_t>(count) == wanted, "the kernel ",
                   launcher.kernel.spec().key, " takes ", wanted, " arguments; found ",
                   count);
  c10::SmallVector<CompiledKernelArgument, 16> arguments;
  for (size_t i = 0; i < letters.size(); ++i) {
    arguments.push_back(as_argument(given[i], letters[i]));
  }
  std::array<size_t, kSizes> sizes{};
  for (size_t d = 0; d < kSizes; ++d) {
    sizes[d] =
        launcher.sizes.empty() ? as_size(given[letters.size() + d]) : launcher.sizes[d];
  }
  {
    const WithoutGil released;
    launcher.kernel.launch(arguments, sizes);
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// empty_strided(sizes, strides, dtype, index), with tuples of int.
PyObject* allocate(PyObject*, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 4 && PyTuple_Check(given[0]) && PyTuple_Check(given[1]) &&
                       THPDtype_Check(given[2]),
                   "allocate() takes a tuple of sizes, a tuple of strides, a dtype and "
                   "an index");
  const auto numbers = [](PyObject* tuple) {
    c10::SmallVector<int64_t, 8> found;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
      found.push_back(static_cast<int64_t>(as_size(PyTuple_GET_ITEM(tuple, i))));
    }
    return found;
  };
  const auto sizes = numbers(given[0]), strides = numbers(given[1]);
  const auto index = static_cast<c10::DeviceIndex>(as_size(given[3]));
  const c10::ScalarType type = reinterpret_cast<THPDtype*>(given[2])->scalar_type;
  at::Tensor made;
  {
    const WithoutGil released;
    ordinal(index);  // throws if it does not exist
    const DeviceScope scope(index);
    made = at::detail::empty_strided_generic(sizes, strides, &device_allocator(),
                                             c10::DispatchKeySet(c10::DispatchKey::XPU),
                                             type);
  }
  return THPVariable_Wrap(std::move(made));
  END_HANDLE_TH_ERRORS
}

PyMethodDef launch_method{"launch", reinterpret_cast<PyCFunction>(&launch),
                          METH_FASTCALL, "Submits a compiled kernel."};
PyMethodDef allocate_method{"allocate", reinterpret_cast<PyCFunction>(&allocate),
                            METH_FASTCALL,
                            "An xpu tensor from sizes, strides, dtype and index."};

py::object make_launcher(std::string key, std::string arguments,
                         std::array<size_t, 3> group, bool lanes, bool faults,
                         double flops, std::vector<size_t> sizes, int planned) {
  TORCH_CHECK_VALUE(arguments.find_first_not_of("rwuidf") == std::string::npos,
                    "an argument of a kernel is one of \"rwuidf\"; found \"", arguments,
                    "\"");
  TORCH_CHECK_VALUE(sizes.empty() || sizes.size() == kSizes,
                    "a kernel has no sizes or three of them; found ", sizes.size());
  for (const size_t each : group) {
    TORCH_CHECK_VALUE(each > 0, "a work-group has no work-items");
  }
  auto* made = new Launcher{CompiledKernel({std::move(key), std::move(arguments), group,
                                            lanes, faults, flops, planned}),
                            std::move(sizes)};
  const py::capsule self(made, kLauncher, [](PyObject* capsule) {
    delete static_cast<Launcher*>(PyCapsule_GetPointer(capsule, kLauncher));
  });
  return py::reinterpret_steal<py::object>(PyCFunction_New(&launch_method, self.ptr()));
}

void build_launcher(const py::handle& function, int index) {
  PyObject* self = PyCFunction_Check(function.ptr()) != 0
                       ? PyCFunction_GetSelf(function.ptr())
                       : nullptr;
  TORCH_CHECK_TYPE(self != nullptr && PyCapsule_IsValid(self, kLauncher) != 0,
                   "build_launcher() takes a function of make_launcher()");
  auto& launcher = *static_cast<Launcher*>(PyCapsule_GetPointer(self, kLauncher));
  const WithoutGil released;
  launcher.kernel.build(static_cast<c10::DeviceIndex>(index));
}

}  // namespace

void bind_compiled_kernel(py::module_& m) {
  m.def("make_launcher", &make_launcher, py::kw_only(), py::arg("key"),
        py::arg("arguments"), py::arg("group"), py::arg("lanes"), py::arg("faults"),
        py::arg("flops"), py::arg("sizes"), py::arg("planned") = -1);
  m.def("build_launcher", &build_launcher, py::arg("launcher"), py::arg("index"));
  m.add_object("allocate", py::reinterpret_steal<py::object>(
                               PyCFunction_New(&allocate_method, nullptr)));
}

}  // namespace xpurt
