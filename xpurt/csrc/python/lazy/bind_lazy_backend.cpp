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

// The numbers that a program was compiled for, by parameter.
using Constants = std::vector<std::pair<size_t, c10::Scalar>>;

bool is_equal(const c10::Scalar& one, const c10::Scalar& other) {
  return one.isComplex() || other.isComplex()
             ? one.toComplexDouble() == other.toComplexDouble()
         : one.isFloatingPoint() || other.isFloatingPoint()
             ? one.toDouble() == other.toDouble()
             : one.toLong() == other.toLong();
}

c10::Scalar scalar_of(const py::handle& number) {
  if (py::isinstance<py::bool_>(number)) return number.cast<bool>();
  if (py::isinstance<py::int_>(number)) return number.cast<int64_t>();
  if (py::isinstance<py::float_>(number)) return number.cast<double>();
  return number.cast<c10::complex<double>>();
}

bool has_constants(const Constants& constants, const std::vector<IValue>& given) {
  return std::ranges::all_of(constants, [&](const auto& constant) {
    const IValue& argument = given.at(constant.first);
    return is_equal(constant.second, argument.isTensor() ? argument.toTensor().item()
                                                         : argument.toScalar());
  });
}

LazyProgram program_of(const SharedObject& code, Constants constants) {
  LazyProgram program;
  program.run = [code](std::vector<IValue> given) {
    const WithGil held;
    return from_python([&] {
      py::list list = py::cast(as_tensors(std::move(given)));
      return (*code)(list).cast<Tensors>();
    });
  };
  if (constants.empty()) return program;
  program.takes = [constants = std::move(constants)](const std::vector<IValue>& given) {
    return has_constants(constants, given);
  };
  return program;
}

// `compile`(graph, arguments) returns None, or a callable and a dict. The callable
// takes a list of tensors, which it may clear, and returns the results. The dict has
// the numbers that it may be called with, by parameter.
LazyProgram compile_in_python(const py::function& compile, LazyGraph& graph,
                              const std::vector<IValue>& arguments) {
  const WithGil held;
  return from_python([&]() -> LazyProgram {
    // The graph owns the program, and so outlives it.
    const py::object made = compile(
        py::cast(&graph, py::return_value_policy::reference), as_tensors(arguments));
    if (made.is_none()) return {};
    auto [code, numbers] = made.cast<std::pair<py::object, py::dict>>();
    Constants constants;
    for (const auto& [parameter, number] : numbers)
      constants.emplace_back(parameter.cast<size_t>(), scalar_of(number));
    return program_of(shared(std::move(code)), std::move(constants));
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
