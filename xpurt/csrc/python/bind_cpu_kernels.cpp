// Kernels of CPU tensors in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "cpu_tensors/cpu_kernels.h"
#include "cpu_tensors/paired_choice.h"
#include "memory/cpu_allocator.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

using Entry = std::tuple<std::string, std::string, bool>;

constexpr std::array<std::pair<const char*, CpuKernels>, 3> kModes{
    {{"native", CpuKernels::native},
     {"sycl", CpuKernels::sycl},
     {"auto", CpuKernels::automatic}}};

void set(const std::string& name, const std::vector<Entry>& entries,
         size_t cached_from_bytes) {
  std::vector<CpuOpEntry> ops;
  for (const auto& [op, overload, with_scalars] : entries) {
    ops.push_back({op, overload, with_scalars});
  }
  for (const auto& [text, mode] : kModes) {
    if (name != text) continue;
    set_cpu_kernels(mode, ops);
    cache_cpu_memory_from(cached_from_bytes);
    return;
  }
  throw py::value_error("CPU kernels \"" + name + "\" are unknown");
}

}  // namespace

void bind_cpu_kernels(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def("set_cpu_kernels", &set, py::arg("mode"), py::arg("ops"),
        py::arg("cached_from_bytes"), py::call_guard<py::gil_scoped_release>(),
        "ops: (name, overload, whether numbers of floating point tell calls apart).");
  m.def("cpu_kernels", [] {
    for (const auto& [text, mode] : kModes) {
      if (mode == cpu_kernels()) return text;
    }
    return "";
  });
  m.def("ordinal_of_host", &ordinal_of_host);
  m.def("blocks_of_cpu_tensors", &blocks_of_cpu_tensors);
  testing.def("ops_with_cpu_kernels", &ops_with_cpu_kernels);
  py::class_<PairedChoice>(testing, "PairedChoice",
                           "For tests: see Note [Paired calls].")
      .def(py::init<>())
      .def(
          "next",
          [](PairedChoice& choice, uint64_t key, double build_us) {
            const FormTurn turn = choice.next(key, build_us);
            return std::pair(turn.second, turn.timed);
          },
          py::arg("key"), py::arg("build_us"))
      .def("record", &PairedChoice::record, py::arg("key"), py::arg("by_row"),
           py::arg("us"))
      .def("refuse", &PairedChoice::refuse, py::arg("key"));
}

}  // namespace xpurt
