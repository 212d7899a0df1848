// The choice of a candidate in Python: the table of costs, and the learned costs.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>

#include "device/device.h"
#include "dispatch/row_choice.h"
#include "op/cost_table.h"
#include "python/bind.h"
#include "schedule/exploration.h"
#include "schedule/learning_mode.h"
#include "schedule/planning/device_prior.h"
#include "schedule/slowdown.h"

namespace py = pybind11;

namespace xpurt {
namespace {

constexpr std::array<const char*, kLayouts> kLayoutNames{"alike", "mixed", "strided",
                                                         "across", "long"};

OperandLayout layout_of(const std::string& name) {
  for (int i = 0; i < kLayouts; ++i) {
    if (name == kLayoutNames[i]) return static_cast<OperandLayout>(i);
  }
  throw py::value_error(
      "layout \"" + name +
      "\" is unknown; it is one of alike, mixed, strided, across, long");
}

const char* name_of(OperandLayout layout) {
  return kLayoutNames[static_cast<size_t>(layout)];
}

using Point = std::tuple<double, double, double>;  // elements, native, kernel
using Curve = std::tuple<std::string, char, std::string, std::vector<Point>>;

void set_curves(c10::DeviceIndex index, size_t position,
                const std::vector<Curve>& given) {
  std::vector<CostCurve> curves;
  for (const auto& [name, letter, layout, points] : given) {
    CostCurve& curve = curves.emplace_back();
    curve.cost_class = cost_class(name);
    curve.letter = letter;
    curve.layout = layout_of(layout);
    for (const auto& [elements, native, kernel] : points) {
      curve.points.push_back({elements, {native, kernel}});
    }
  }
  set_cost_curves(index, position, std::move(curves));
}

std::optional<std::pair<double, double>> expected(c10::DeviceIndex index,
                                                  const std::string& name, char letter,
                                                  const std::string& layout,
                                                  double elements) {
  const auto found = expected_costs(ordinal(index).home_device().id, cost_class(name),
                                    letter, layout_of(layout), elements);
  if (!found.has_value()) return std::nullopt;
  return std::pair(found->native, found->kernel);
}

py::list learned() {
  py::list rows;
  for (const LearnedCalls& each : learned_calls()) {
    rows.append(py::make_tuple(each.op, each.ordinal, std::string(1, each.letter),
                               name_of(each.layout), each.size, each.calls_left,
                               each.in_use, each.timed, each.factors));
  }
  return rows;
}

// Nanoseconds of one choice of a tier, as unboxed ops make it, with operands like
// these.
double choice_ns(const std::string& name, const std::string& overload,
                 const std::vector<at::Tensor>& operands, int calls) {
  const OpRecord& record = op_record(
      c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str()));
  size_t native = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    CallSignature signature;
    for (const at::Tensor& each : operands)
      signature.record(*each.unsafeGetTensorImpl());
    native += goes_native(record, operands[0].device().index(), signature) ? 1 : 0;
  }
  const std::chrono::duration<double, std::nano> took =
      std::chrono::steady_clock::now() - begin;
  // Uses the result, so that the calls are not optimized away.
  return native <= static_cast<size_t>(calls) ? took.count() / calls : 0;
}

void bind_policy_parts(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  py::class_<Slowdown>(testing, "Slowdown", "For tests: see Note [Slowdown].")
      .def(py::init<>())
      .def("record", &Slowdown::record, py::arg("ratio"), py::arg("measured_us"),
           py::arg("is_known") = true)
      .def("suspect", &Slowdown::suspect)
      .def_property_readonly("factor", &Slowdown::factor)
      .def_property_readonly("wants_samples", &Slowdown::wants_samples);
  testing.def(
      "spent_before_trial",
      [](double cost_us, double now_us, double build_us, bool is_new, bool may_divide) {
        return spent_before_trial({cost_us, 0, build_us, is_new, false}, now_us,
                                  may_divide);
      },
      py::arg("cost_us"), py::arg("now_us"), py::arg("build_us"), py::arg("is_new"),
      py::arg("may_divide"), "For tests: see Note [Untimed parts].");
  py::class_<DevicePrior>(testing, "DevicePrior", "For tests: see Note [Device prior].")
      .def(py::init<>())
      .def(
          "record",
          [](DevicePrior& prior, size_t op, double measured_us, double expected_us) {
            prior.record(reinterpret_cast<const void*>(op), measured_us, expected_us);
          },
          py::arg("op"), py::arg("measured_us"), py::arg("expected_us"))
      .def("corrected_us", &DevicePrior::corrected_us, py::arg("expected_us"));
}

}  // namespace

void bind_policy(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def("set_cost_curves", &set_curves, py::arg("index"), py::arg("position"),
        py::arg("curves"),
        "What ops cost on a device: (class, letter of the type, layout, [(elements, us "
        "native, us by a kernel), ...]). What was learned is forgotten.");
  testing.def(
      "expected_costs", &expected,
      "Microseconds (native, by a kernel) on the home device; None: not measured.");
  m.def("set_learning", &set_learning);
  m.def("learning", &learning_is_on);
  testing.def(
      "learned_calls", &learned,
      "(op, ordinal, letter, layout, log2 of the elements, calls to the next sample, "
      "candidate in use at home, [timed samples, ...], [measured over expected time, "
      "...]); candidates are kernels by position, then the native kernel");
  testing.def("forget_statistics", [] { forget_statistics(); });
  testing.def(
      "set_learning_bias",
      [](double native_us, double kernel_us) {
        set_learning_bias({native_us, kernel_us});
      },
      "For tests: microseconds that are added to every time that is learned from.");
  testing.def(
      "choice_ns", &choice_ns,
      "For benchmarks: nanoseconds of one choice of a tier, as unboxed ops make it.");
  bind_policy_parts(m);
}

}  // namespace xpurt
