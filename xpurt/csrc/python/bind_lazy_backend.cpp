// The backend of lazy tensors for Python.
#include <ATen/ops/scalar_tensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind.h>
#include <torch/csrc/utils/pybind.h>

#include "host/gil.h"
#include "lazy/backend.h"
#include "lazy/graph.h"
#include "lazy/lazy_kernels.h"
#include "python/bind.h"
#include "python/from_python.h"

namespace py = pybind11;

namespace xpurt {
namespace {

using Tensors = std::vector<at::Tensor>;
using c10::IValue;

// A number of the program may be one of the arguments.
Tensors as_tensors(std::vector<IValue> arguments) {
  Tensors tensors;
  tensors.reserve(arguments.size());
  for (IValue& each : arguments) {
    tensors.push_back(each.isTensor() ? std::move(each).toTensor()
                                      : at::scalar_tensor(each.toScalar()));
  }
  return tensors;
}

Tensors run_op_by_op(const LazyGraph& graph, Tensors arguments) {
  const WithoutGil released;
  return graph.run_op_by_op({std::make_move_iterator(arguments.begin()),
                             std::make_move_iterator(arguments.end())});
}

// Freed under Python's lock, by whichever thread drops the graph; not after Python's
// end.
std::shared_ptr<py::object> shared(py::object callable) {
  return {new py::object(std::move(callable)), [](py::object* kept) {
            if (!Py_IsInitialized() || python_ends()) return;
            const WithGil held;
            delete kept;
          }};
}

// `compile`(graph, arguments, op_by_op) returns a callable that takes a list of
// tensors, which it clears, and returns the results; or None.
LazyProgram compile_in_python(const py::function& compile, LazyGraph& graph,
                              const std::vector<IValue>& arguments) {
  const WithGil held;
  return from_python([&]() -> LazyProgram {
    // The graph owns the program, and so outlives it.
    const py::cpp_function op_by_op(
        [&graph](Tensors given) { return run_op_by_op(graph, std::move(given)); });
    py::object made = compile(graph.graph(), as_tensors(arguments), op_by_op);
    if (made.is_none()) return {};
    return [program = shared(std::move(made))](std::vector<IValue> given) {
      const WithGil held;
      return from_python([&] {
        py::list list = py::cast(as_tensors(std::move(given)));
        return (*program)(list).cast<Tensors>();
      });
    };
  });
}

}  // namespace

void bind_lazy_backend(py::module_& m) {
  m.def("init_lazy_backend", &init_lazy_backend);
  m.def("register_lazy_kernels", &register_lazy_kernels);
  m.def(
      "set_lazy_compiler",
      [](const py::object& compile, bool at_once) {
        if (compile.is_none()) return set_lazy_compiler({});
        // Leaked: called from any thread until the process ends.
        auto* function = new py::function(compile);
        set_lazy_compiler(
            {[function](LazyGraph& graph, const std::vector<IValue>& arguments) {
               return compile_in_python(*function, graph, arguments);
             },
             at_once});
      },
      py::arg("compile"), py::arg("at_once"));
}

}  // namespace xpurt
