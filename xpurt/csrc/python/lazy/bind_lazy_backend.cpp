// The backend of lazy tensors for Python.
#include <ATen/ops/scalar_tensor.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind.h>
#include <torch/csrc/lazy/backend/backend_interface.h>
#include <torch/csrc/utils/pybind.h>

#include "host/gil.h"
#include "lazy/backend.h"
#include "lazy/collective_call.h"
#include "lazy/graph.h"
#include "lazy/lazy_kernels.h"
#include "lazy/real_devices.h"
#include "lazy/real_value.h"
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

using SharedObject = std::shared_ptr<py::object>;

// Freed under Python's lock, by whichever thread drops the graph; not after Python's
// end.
SharedObject shared(py::object callable) {
  return {new py::object(std::move(callable)), [](py::object* kept) {
            if (!Py_IsInitialized() || python_ends()) return;
            const WithGil held;
            delete kept;
          }};
}

LazyProgram program_of(const SharedObject& code, const SharedObject& takes) {
  LazyProgram program;
  program.run = [code](std::vector<IValue> given) {
    const WithGil held;
    return from_python([&] {
      py::list list = py::cast(as_tensors(std::move(given)));
      return (*code)(list).cast<Tensors>();
    });
  };
  if (!takes) return program;
  program.takes = [takes](const std::vector<IValue>& given) {
    const WithGil held;
    return from_python([&] { return (*takes)(as_tensors(given)).cast<bool>(); });
  };
  return program;
}

// `compile`(graph, arguments) returns None, or two callables. The first one takes a
// list of tensors, which it clears, and returns the results. The second one takes one,
// too, and returns whether the first one may be called; or it is None.
LazyProgram compile_in_python(const py::function& compile, LazyGraph& graph,
                              const std::vector<IValue>& arguments) {
  const WithGil held;
  return from_python([&]() -> LazyProgram {
    // The graph owns the program, and so outlives it.
    const py::object made = compile(
        py::cast(&graph, py::return_value_policy::reference), as_tensors(arguments));
    if (made.is_none()) return {};
    auto [code, takes] = made.cast<std::pair<py::object, py::object>>();
    return program_of(shared(std::move(code)),
                      takes.is_none() ? SharedObject() : shared(std::move(takes)));
  });
}

LazyCompiler::Make made_in_python(const py::object& callable) {
  // Leaked: called from any thread until the process ends.
  auto* function = new py::function(callable);
  return [function](LazyGraph& graph, const std::vector<IValue>& arguments) {
    return compile_in_python(*function, graph, arguments);
  };
}

}  // namespace

void bind_lazy_backend(py::module_& m) {
  py::class_<LazyGraph, std::shared_ptr<LazyGraph>>(m, "LazyGraph")
      .def_property_readonly("script", &LazyGraph::graph)
      .def_property_readonly("name", &LazyGraph::name)
      .def_property_readonly("runs", &LazyGraph::runs)
      .def_property_readonly("run_us", &LazyGraph::run_us);
  m.def("lazy_graph_states", [] {
    py::list found;
    for (const LazyGraphState& each : lazy_graph_states()) {
      found.append(
          py::make_tuple(each.name, each.text, each.runs, each.run_us, each.due_us));
    }
    return found;
  });
  m.def("lazy_graph_runs", [] {
    py::list rows;
    for (const GraphRunsRow& each : lazy_graph_runs()) {
      rows.append(
          py::make_tuple(each.graph, each.form, each.device, each.calls, each.seconds));
    }
    return rows;
  });
  m.def("reset_lazy_graph_runs", &reset_lazy_graph_runs);
  m.def("init_lazy_backend", &init_lazy_backend);
  m.def("lazy_device_type",
        [] { return c10::DeviceTypeName(lazy_device_type(), true); });
  m.def("lazy_device_types", [] {
    std::vector<std::string> found;
    for (const c10::DeviceType each : real_device_types())
      found.push_back(c10::DeviceTypeName(each, true));
    return found;
  });
  m.def("set_lazy_device_type", [](const std::string& name) {
    {
      const WithoutGil released;
      set_lazy_device_type(c10::Device(name).type());
    }
    register_kernels_of_type();
  });
  m.def("real_device", [](c10::Device lazy) {
    return real_device(torch::lazy::atenDeviceToBackendDevice(lazy));
  });
  m.def("lazy_device", [](c10::Device real) {
    return torch::lazy::backendDeviceToAtenDevice(
        torch::lazy::getBackend()->GetBackendDevice(real));
  });
  m.def("backend_devices", [] {
    py::list found;
    for (const auto& each : torch::lazy::getBackend()->GetBackendDevices())
      found.append(py::make_tuple(each.toString(), real_device(each)));
    return found;
  });
  m.def("lazy_over", &lazy_over, py::arg("xpu"));
  m.def("refuse_as_data", &refuse_as_data, py::arg("wrapper"));
  m.def(
      "real_value",
      [](const at::Tensor& lazy) {
        const WithoutGil released;
        return real_value(lazy);
      },
      py::arg("lazy"));
  m.def("register_lazy_kernels", &register_lazy_kernels);
  m.def("run_traced_collectives", &run_traced_collectives,
        py::call_guard<py::gil_scoped_release>());
  m.def(
      "set_lazy_compiler",
      [](const py::object& compile, bool at_once, const py::object& find) {
        if (compile.is_none()) return set_lazy_compiler({});
        set_lazy_compiler(
            {.compile = made_in_python(compile),
             .find = find.is_none() ? LazyCompiler::Make{} : made_in_python(find),
             .at_once = at_once});
      },
      py::arg("compile"), py::arg("at_once"), py::arg("find") = py::none());
}

}  // namespace xpurt
