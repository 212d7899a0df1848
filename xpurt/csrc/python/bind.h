// The parts of the Python interface; each is called once, by module.cpp or by the
// module of its room.
#pragma once

#include <pybind11/pybind11.h>

namespace xpurt {

// Python's access to the allocator beyond c10's interface.
void bind_allocator(pybind11::module_& m);
void bind_compiled_kernel(pybind11::module_& m);
void bind_compiler(pybind11::module_& m);
void bind_cpu_kernels(pybind11::module_& m);
void bind_device(pybind11::module_& m);
void bind_distributed(pybind11::module_& m);
void bind_graph(pybind11::module_& m);
void bind_lazy(pybind11::module_& m);
void bind_lazy_backend(pybind11::module_& m);
void bind_learner(pybind11::module_& m);
void bind_locks(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_ops(pybind11::module_& m);
void bind_planning(pybind11::module_& m);
void bind_prototype(pybind11::module_& m);
void bind_prototype_backend(pybind11::module_& m);
void bind_renamed_code(pybind11::module_& m);
void bind_policy(pybind11::module_& m);
void bind_schedule(pybind11::module_& m);
void bind_raw_pointers(pybind11::module_& m);
void bind_snapshot(pybind11::module_& m);
void bind_share(pybind11::module_& m);
void bind_stream(pybind11::module_& m);
void bind_kernels(pybind11::module_& m);

}  // namespace xpurt
