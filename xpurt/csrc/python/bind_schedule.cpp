// The scheduler in Python: what it learns, the reasons of its choices, and its parts
// for tests.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>

#include "device/device.h"
#include "device/device_failure.h"
#include "dispatch/row_choice.h"
#include "op/op_record.h"
#include "program/program.h"
#include "python/bind.h"
#include "schedule/planning/backlog.h"
#include "schedule/best_alone.h"
#include "schedule/candidates.h"
#include "schedule/decision.h"
#include "schedule/device_report.h"
#include "schedule/explain.h"
#include "schedule/learning_mode.h"
#include "schedule/planning/learned_cost.h"
#include "schedule/partition.h"
#include "schedule/scheduler.h"

namespace py = pybind11;

namespace xpurt {
namespace {

py::list explained(size_t begin) {
  py::list rows;
  for (const ExplainedOp& op : end_explaining(begin)) {
    py::list candidates;
    for (const ExplainedCandidate& candidate : op.candidates) {
      candidates.append(
          py::make_tuple(candidate.device, candidate.native, candidate.free_us,
                         candidate.moves_us, candidate.cost_us, candidate.finish_us,
                         candidate.held_back, candidate.samples, candidate.timed_us));
    }
    rows.append(py::make_tuple(op.op, op.device,
                               kTierNames[static_cast<size_t>(op.tier)], op.why,
                               op.measured_us, candidates));
  }
  return rows;
}

py::list devices_reported() {
  py::list rows;
  for (const DeviceReportRow& row : device_report()) {
    rows.append(py::make_tuple(row.device, row.moves, row.bytes_moved, row.split_ops,
                               row.timed_calls, row.predicted_us, row.measured_us,
                               row.busy_us, row.gained_us, row.bytes_evicted));
  }
  return rows;
}

// Nanoseconds of one decision for an op with such operands. The op is not run.
double decision_ns(const std::string& name, const std::string& overload,
                   const std::vector<at::Tensor>& tensors, int calls) {
  OpRecord& record = op_record(
      c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str()));
  torch::jit::Stack stack;
  const auto& schema = record.op.schema();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto& argument = schema.arguments()[i];
    if (i < tensors.size()) {
      stack.push_back(tensors[i]);
    } else {
      stack.push_back(argument.default_value().value());
    }
  }
  const c10::DeviceIndex index = stack[0].toTensor().device().index();
  size_t rows = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) {
    RowChoice choice;
    choose_row(record, index, stack, nullptr, &choice);
    rows += choice.row != nullptr ? 1 : 0;
  }
  const std::chrono::duration<double, std::nano> took =
      std::chrono::steady_clock::now() - begin;
  return rows <= static_cast<size_t>(calls) ? took.count() / calls : 0;
}

std::vector<double> proportions(const std::vector<at::Tensor>& reads, double flops,
                                double bytes) {
  std::vector<const c10::StorageImpl*> storages;
  for (const at::Tensor& each : reads) {
    storages.push_back(each.storage().unsafeGetStorageImpl());
  }
  Work work;
  work.flops = flops;
  work.bytes = bytes;
  work.reads = storages;
  Stream& stream = current_stream(reads.at(0).device().index());
  work.residency = Residency(work.reads, {}, stream.ordinal());
  return partition_proportions(work, stream);
}

void bind_parts(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  py::class_<LearnedCost>(testing, "LearnedCost",
                          "For tests: see Note [Learned costs].")
      .def(py::init<>())
      .def("record", &LearnedCost::record, py::arg("time"))
      .def("estimate", &LearnedCost::estimate, py::arg("expected"))
      .def("undisturbed", &LearnedCost::undisturbed, py::arg("expected"))
      .def("bounded", &LearnedCost::bounded, py::arg("expected"))
      .def_property_readonly("count", &LearnedCost::count)
      .def_property_readonly("is_known", &LearnedCost::is_known)
      .def_property_readonly("has_converged", &LearnedCost::has_converged);
  const auto home = [](size_t number) { return reinterpret_cast<void*>(number << 9); };
  py::class_<Backlog>(testing, "Backlog", "For tests: see Note [Predicted clocks].")
      .def(py::init<size_t>())
      .def("free_us", &Backlog::free_us)
      .def("written_us",
           [home](const Backlog& backlog, size_t storage, double now) {
             return backlog.written_us(home(storage), now);
           })
      .def("book", &Backlog::book)
      .def("book_write", [home](Backlog& backlog, size_t storage,
                                double end) { backlog.book_write(home(storage), end); })
      .def("take_back", &Backlog::take_back)
      .def("correct", &Backlog::correct)
      .def("clear", &Backlog::clear);
}

}  // namespace

void bind_schedule(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  bind_parts(m);
  m.def("set_deterministic", &set_deterministic);
  m.def("use_cost_curves", &use_cost_curves,
        "Curves of set_cost_curves count more than the costs that were just set.");
  m.def("begin_explaining", &begin_explaining,
        "The number that end_explaining() takes. May be called while others explain.");
  m.def(
      "end_explaining", &explained,
      "(op, device, tier, why, us measured, [(device, native, us until it is free, us "
      "of "
      "copies, us of the work, us until it is done, is held back, timed calls, us that "
      "these took), ...]) of each op since then");
  m.def("device_report", &devices_reported,
        "(device, moves, bytes moved, shards of split ops, calls that were timed, us "
        "predicted of these, us measured, us predicted of all, us that these gained)");
  m.def("reset_device_report", &reset_device_report);
  testing.def("builds_pending", &builds_pending);
  testing.def(
      "hold_alone",
      [](std::optional<size_t> position) { hold_alone(ordinal(-1), position); },
      py::arg("position"),
      "Holds all work of the current ordinal to one position, as if the program was "
      "measured to be faster there; None ends it. See Note [Baseline].");
  testing.def("pretend_times", &pretend_times, py::arg("us"),
              "The scheduler's clock stands, and goes on by so many microseconds with "
              "each timed call that is not divided, by position, behind them PyTorch's "
              "kernel. Empty: it runs.");
  testing.def(
      "left_out_us", [] { return left_out_us(ordinal(-1)); },
      "Microseconds in which the program had waited and gave no work to the devices of "
      "the current ordinal. See Note [Baseline].");
  m.def("stop_builds", &stop_builds, py::call_guard<py::gil_scoped_release>());
  m.def(
      "partition_proportions", &proportions, py::arg("reads"), py::arg("flops"),
      py::arg("bytes"),
      "For tests: the proportions for operands that are read like these, whichever op "
      "reads them.");
  testing.def(
      "decision_ns", &decision_ns,
      "For benchmarks: nanoseconds of one choice of a device, with operands like "
      "these; the other arguments are the op's defaults.");
}

}  // namespace xpurt
