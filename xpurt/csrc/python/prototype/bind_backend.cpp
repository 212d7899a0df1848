// The backend of torch.distributed for prototypes.
#include <pybind11/pybind11.h>
#include <torch/csrc/utils/pybind.h>

#include "prototype/prototype_backend.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {

// The base class is that of torch._C._distributed_c10d, which may be imported later.
void bind_prototype_backend(py::module_& m) {
  constexpr const char* kClass = "PrototypeBackend";
  m.def("define_backend", [m]() mutable {
    if (py::hasattr(m, kClass)) return py::object(m.attr(kClass));
    auto made = py::class_<PrototypeBackend, c10d::Backend,
                           c10::intrusive_ptr<PrototypeBackend>>(
        m, kClass,
        "The backend of torch.distributed for tensors of prototypes, around the one "
        "for "
        "xpu.");
    made.def(py::init([](const BackendPointer& behind) {
               return c10::make_intrusive<PrototypeBackend>(behind);
             }),
             py::arg("behind"));
    made.def_property_readonly("behind", &PrototypeBackend::behind);
    made.def_property_readonly("options", [](const PrototypeBackend& backend) {
      return py::object(py::cast(backend.behind()).attr("options"));
    });
    // As ProcessGroupXCCL's.
    made.def(
        "perform_nocolor_split", [](PrototypeBackend&, const py::object&) {},
        py::arg("device"));
    return py::object(std::move(made));
  });
}

}  // namespace xpurt
