// XPU graphs for torch.xpu.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "c10/graph.h"
#include "memory/allocator.h"
#include "python/bind.h"
#include "stream/capture.h"

namespace py = pybind11;

namespace xpurt {

void bind_graph(py::module_& m) {
  m.def("graph_pool_handle", [] { return MemoryPool::new_id(true); });
  m.def("is_current_stream_capturing",
        [] { return capture_is_underway() && is_capturing(c10::DeviceIndex(-1)); });
  py::class_<Graph>(m, "Graph")
      .def(py::init([](bool keep_graph) {
             at::GraphImplArgs args;
             args.keep_graph = keep_graph;
             return std::make_unique<Graph>(args);
           }),
           py::arg("keep_graph") = false)
      .def(
          "capture_begin",
          [](Graph& self, std::optional<c10::MempoolId_t> pool) {
            self.capture_begin(pool.value_or(c10::MempoolId_t{0, 0}));
          },
          py::arg("pool") = py::none())
      // wrap_pybind_function turns TORCH_WARN into Python's warnings.
      .def("capture_end",
           torch::wrap_pybind_function([](Graph& self) { self.capture_end(); }))
      .def("instantiate", &Graph::instantiate)
      .def("register_generator_state", &Graph::register_generator_state,
           py::arg("state"))
      .def("replay", &Graph::replay)
      .def("reset", &Graph::reset)
      .def("pool", &Graph::pool)
      .def("enable_debug_mode", &Graph::enable_debug_mode)
      .def("debug_dump",
           torch::wrap_pybind_function(
               [](Graph& self, const std::string& path) { self.debug_dump(path); }),
           py::arg("debug_path"))
      .def("raw_xpu_graph",
           [](Graph& self) { return reinterpret_cast<uintptr_t>(&self.raw_graph()); })
      .def("raw_xpu_graph_exec", [](Graph& self) {
        return reinterpret_cast<uintptr_t>(&self.raw_executable());
      });
}

}  // namespace xpurt
