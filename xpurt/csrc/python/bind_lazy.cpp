// Lazy copies for Python.
#include <pybind11/pybind11.h>
#include <torch/csrc/utils/pybind.h>

#include "dispatch/lazy_conversion.h"
#include "memory/known_storages.h"
#include "memory/lazy_memory.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {

void bind_lazy(py::module_& m) {
  m.def("exchange_lazy_copies", [](int value) {
    return static_cast<int>(exchange_lazy_copies(static_cast<Lazy>(value)));
  });
  m.def("set_lazy_copies_of_process", &set_lazy_copies_of_process);
  m.def("is_lazy", [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() &&
           is_lazy(*tensor.storage().unsafeGetStorageImpl());
  });
  m.def("never_copy_lazily", [](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    never_copy_lazily(*tensor.storage().unsafeGetStorageImpl());
  });
}

}  // namespace xpurt
