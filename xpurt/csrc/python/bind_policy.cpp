// The choice of tiers in Python: the table of costs, and the learned costs.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>

#include "device/device.h"
#include "dispatch/row_choice.h"
#include "op/cost_table.h"
#include "python/bind.h"
#include "schedule/tier_choice.h"
#include "schedule/tier_learner.h"

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
  for (const LearnedTier& each : learned_tiers()) {
    rows.append(py::make_tuple(
        each.op, each.device_id, std::string(1, each.letter), name_of(each.layout),
        each.size, each.calls_left, each.table_kernel ? "kernel" : "native",
        each.learned_kernel ? "kernel" : "native", each.us.native, each.us.kernel));
  }
  return rows;
}

// Nanoseconds of one choice of a tier, as unboxed ops make it, with operands like
// these.
double tier_choice_ns(const std::string& name, const std::string& overload,
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

void bind_learner(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  py::class_<TierLearner::TimedSample>(testing, "TimedSample")
      .def_readonly("kernel", &TierLearner::TimedSample::kernel)
      .def_readonly("counts", &TierLearner::TimedSample::counts);
  py::class_<TierLearner>(testing, "TierLearner",
                          "For tests: see Note [Learning tiers].")
      .def(py::init([](double native_us, double kernel_us, bool is_built) {
             return TierLearner({native_us, kernel_us}, is_built);
           }),
           py::arg("native_us"), py::arg("kernel_us"), py::arg("is_built") = false)
      .def("next", &TierLearner::next, py::arg("calls"), py::arg("build_us"))
      .def("record", &TierLearner::record, py::arg("sample"), py::arg("us"),
           py::arg("stall_us"))
      .def_property_readonly("kernel", &TierLearner::kernel)
      .def_property_readonly("interval", &TierLearner::interval)
      .def_property_readonly("estimated_us", [](const TierLearner& learner) {
        const TierCosts us = learner.estimate();
        return std::pair(us.native, us.kernel);
      });
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
      "learned_tiers", &learned,
      "(op, device id, letter, layout, log2 of the elements, calls to the next sample, "
      "tier by the table, tier in use, us native, us by a kernel)");
  testing.def("forget_tiers", [] { forget_tiers(); });
  testing.def(
      "set_learning_bias",
      [](double native_us, double kernel_us) {
        set_learning_bias({native_us, kernel_us});
      },
      "For tests: microseconds that are added to every time that is learned from.");
  testing.def(
      "choice_ns", &tier_choice_ns,
      "For benchmarks: nanoseconds of one choice of a tier, as unboxed ops make it.");
  bind_learner(m);
}

}  // namespace xpurt
