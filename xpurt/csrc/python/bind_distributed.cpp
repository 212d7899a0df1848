// The backend of torch.distributed in Python.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/utils/pybind.h>

#include "dispatch/composite/attention.h"
#include "distributed/backend.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

constexpr const char* kClass = "ProcessGroupXCCL";

using Options = c10::intrusive_ptr<XpuBackendOptions>;

// `make_inner`(store, rank, size, timeout) returns a backend for CPU tensors.
py::object define_class(py::module_& m, const py::function& make_inner) {
  auto made = py::class_<XpuBackend, c10d::Backend, c10::intrusive_ptr<XpuBackend>>(
      m, kClass,
      "The backend of torch.distributed for xpu tensors, around one for CPU tensors.");
  py::class_<XpuBackendOptions, c10d::Backend::Options, Options>(made, "Options")
      .def(py::init<>())
      .def_readwrite("is_high_priority_stream",
                     &XpuBackendOptions::is_high_priority_stream)
      // split_group() copies the options of the group that it splits.
      .def("__deepcopy__", [](const XpuBackendOptions& options, const py::dict&) {
        return c10::make_intrusive<XpuBackendOptions>(options);
      });
  set_inner_backend([make_inner](const auto& store, int rank, int size, auto timeout) {
    const py::gil_scoped_acquire held;
    return make_inner(store, rank, size, timeout).template cast<BackendPointer>();
  });
  made.def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       const Options& options) {
             return c10::make_intrusive<XpuBackend>(
                 make_inner_backend(store, rank, size, options->timeout), options,
                 /*is_shared=*/false);
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"));
  made.def_property_readonly("inner", &XpuBackend::inner,
                             "The backend that exchanges the data of CPU tensors.");
  // NCCL has to be called here by the ranks that are not in a new group; gloo does not.
  made.def(
      "perform_nocolor_split", [](XpuBackend&, const py::object&) {},
      py::arg("device"));
  made.def_property_readonly("options", [](XpuBackend& backend) {
    return c10::static_intrusive_pointer_cast<XpuBackendOptions>(
        backend.getBackendOptions());
  });
  return made;
}

}  // namespace

// The base classes are those of torch._C._distributed_c10d, which may be imported
// later.
void bind_distributed(py::module_& m) {
  m.def(
      "define_backend",
      [m](const py::function& make_inner) mutable {
        return py::hasattr(m, kClass) ? py::object(m.attr(kClass))
                                      : define_class(m, make_inner);
      },
      py::arg("make_inner"));
  m.def("require_fused_attention", &require_fused_attention, py::arg("required"));
}

}  // namespace xpurt
