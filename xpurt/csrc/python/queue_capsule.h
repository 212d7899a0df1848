// SYCL queues for dpctl.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <sycl/sycl.hpp>

namespace xpurt {

// A capsule that owns a copy of the queue. dpctl renames it after it has copied the
// queue.
inline pybind11::object capsule_of(const sycl::queue& queue) {
  auto copy = std::make_unique<sycl::queue>(queue);
  PyObject* capsule = PyCapsule_New(copy.get(), "SyclQueueRef", [](PyObject* made) {
    const char* name = PyCapsule_GetName(made);
    delete static_cast<sycl::queue*>(PyCapsule_GetPointer(made, name));
  });
  if (capsule == nullptr) throw pybind11::error_already_set();
  copy.release();
  return pybind11::reinterpret_steal<pybind11::object>(capsule);
}

}  // namespace xpurt
