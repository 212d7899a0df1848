// The scheduler's decisions in Python, for the simulator.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "memory/replica/copy_value.h"
#include "python/bind.h"
#include "schedule/planning/baseline.h"
#include "schedule/planning/boundary.h"
#include "schedule/planning/division.h"
#include "schedule/planning/lost_division.h"
#include "schedule/planning/online_policy.h"
#include "schedule/planning/parallelism.h"
#include "schedule/planning/two_forms.h"

namespace py = pybind11;

namespace xpurt {
namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

size_t choose(OnlinePolicy& policy, const Doubles& free_at, const Doubles& ready_at,
              const Doubles& cost, const Doubles& leave, double now, bool is_idle,
              const std::optional<Doubles>& streams) {
  const size_t devices = policy.alone().size();
  for (const Doubles* each :
       {&free_at, &ready_at, &cost, &leave, streams ? &*streams : &leave}) {
    if (each->ndim() != 1 || static_cast<size_t>(each->size()) != devices) {
      throw py::value_error("one candidate per device of the policy is needed");
    }
  }
  c10::SmallVector<Candidate, 64> candidates(devices);
  for (size_t i = 0; i < devices; ++i) {
    candidates[i].free_us = free_at.data()[i];
    candidates[i].ready_us = ready_at.data()[i];
    candidates[i].cost_us = cost.data()[i];
    candidates[i].leave_us = leave.data()[i];
    if (streams) candidates[i].streams_us = streams->data()[i];
  }
  return policy.choose(candidates, now, is_idle);
}

// Of the first rounds of two forms.
constexpr int kMostCalls = TwoForms::kTurns * TwoForms::kMostRounds;

double device_choice_ns(OnlinePolicy& policy, size_t calls) {
  const std::vector<Candidate> candidates(policy.alone().size(), {.cost_us = 1});
  size_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < calls; ++i) sum += policy.choose(candidates);
  const std::chrono::duration<double, std::nano> took =
      std::chrono::steady_clock::now() - begin;
  // Uses the result, so that the calls are not optimized away.
  return sum <= calls * candidates.size() ? took.count() / calls : 0;
}

// Times of a division by device; a device that cannot run the op has an infinite
// `whole`.
struct PartTimes {
  std::vector<double> queue, launch, copies, whole, sums;

  std::vector<DevicePart> parts() const {
    const size_t devices = whole.size();
    if (queue.size() != devices || launch.size() != devices ||
        copies.size() != devices || sums.size() != devices) {
      throw py::value_error("a division needs five times of each device");
    }
    std::vector<DevicePart> found;
    for (size_t p = 0; p < devices; ++p) {
      if (!(queue[p] >= 0 && launch[p] >= 0 && copies[p] >= 0 && whole[p] > 0 &&
            sums[p] >= 0)) {
        throw py::value_error("times of a division are negative, or `whole` is 0");
      }
      if (std::isfinite(whole[p])) {
        found.push_back({.position = p,
                         .queue_us = queue[p],
                         .launch_us = launch[p],
                         .copies_us = copies[p],
                         .whole_us = whole[p],
                         .sum_us = sums[p]});
      }
    }
    return found;
  }
};

}  // namespace

void bind_planning(py::module_& m) {
  py::class_<OnlinePolicy>(m, "OnlinePolicy", "See Note [Declining].")
      .def(py::init<size_t>(), py::arg("devices"))
      .def("remember", [](OnlinePolicy& policy,
                          const std::vector<double>& work) { policy.remember(work); })
      .def("choose", &choose, py::arg("free_at"), py::arg("ready_at"), py::arg("cost"),
           py::arg("leave"), py::arg("now") = 0.0, py::arg("is_idle") = false,
           py::arg("streams") = py::none())
      .def_property_readonly("best_alone", &OnlinePolicy::best_alone)
      .def_property_readonly("alone",
                             [](const OnlinePolicy& policy) {
                               return std::vector<double>(policy.alone().begin(),
                                                          policy.alone().end());
                             })
      .def("choice_ns", &device_choice_ns, py::arg("calls"),
           "For benchmarks: nanoseconds of one choice. The policy cannot be used "
           "afterwards.");
  py::class_<Baseline>(m, "Baseline", "See Note [Baseline].")
      .def(py::init<>())
      .def("add", &Baseline::add, py::arg("kind"), py::arg("alone_us"),
           py::arg("elsewhere"), py::arg("now"))
      .def_property_readonly("is_alone", &Baseline::is_alone)
      .def_property_readonly("ratio", &Baseline::ratio);
  py::class_<Parallelism>(m, "Parallelism", "See Note [Overlap].")
      .def(py::init<>())
      .def(
          "add",
          [](Parallelism& parallelism, double cost_us,
             const std::vector<std::pair<uint64_t, uint32_t>>& reads, bool blocks) {
            std::vector<Parallelism::Operand> operands;
            for (const auto& [value, version] : reads) {
              operands.push_back({value, version});
            }
            return parallelism.add(cost_us, operands, blocks);
          },
          py::arg("cost_us"), py::arg("reads"), py::arg("blocks") = false)
      .def(
          "add_written",
          [](Parallelism& parallelism, uint64_t value, uint32_t version,
             double end_us) { parallelism.add_written({value, version}, end_us); },
          py::arg("value"), py::arg("version"), py::arg("end_us"))
      .def(
          "add_result",
          [](Parallelism& parallelism, uint64_t value, uint32_t version,
             double end_us) { parallelism.add_result({value, version}, end_us); },
          py::arg("value"), py::arg("version"), py::arg("end_us"))
      .def("join", &Parallelism::join)
      .def_property_readonly("average", &Parallelism::average);
  py::class_<Overlap>(m, "Overlap", "See Note [Overlap].")
      .def(py::init<double, double, double>(), py::arg("kernel_us"),
           py::arg("native_us"), py::arg("others"))
      .def("us", &Overlap::us, py::arg("parallelism"))
      .def("prefers_queue", &Overlap::prefers_queue, py::arg("parallelism"),
           py::arg("is_in_use"))
      .def("always_blocks", &Overlap::always_blocks);
  py::class_<TwoForms>(m, "TwoForms", "See Note [Two forms].")
      .def(py::init<double, double, bool>(), py::arg("price_us"), py::arg("lost_us"),
           py::arg("ends"))
      .def("next",
           [](TwoForms& forms) {
             const FormTurn turn = forms.next();
             return std::pair(turn.second, turn.timed);
           })
      .def("record", &TwoForms::record, py::arg("second"), py::arg("us"))
      .def("refuse", &TwoForms::refuse)
      .def_property_readonly("in_use", &TwoForms::in_use)
      .def_property_readonly("decided", &TwoForms::decided)
      .def("least_us", &TwoForms::least_us, py::arg("second"))
      .def_property_readonly("lost_us", &TwoForms::lost_us)
      .def_readonly_static("most_calls", &kMostCalls);
  py::class_<CopyRegret>(m, "CopyRegret", "See Note [Copies that stay].")
      .def(py::init<>())
      .def("add", &CopyRegret::add, py::arg("gain_us"), py::arg("copy_us"),
           py::arg("calls") = 1.0)
      .def("pay_off", &CopyRegret::pay_off);
  py::class_<StorageUses>(m, "StorageUses", "See Note [Values of copies].")
      .def(py::init<>())
      .def("add", &StorageUses::add, py::arg("now"), py::arg("reads") = true,
           py::arg("writes") = false)
      .def("gap", &StorageUses::gap, py::arg("now"))
      .def("next", &StorageUses::next, py::arg("now"));
  py::class_<CopyValue>(m, "CopyValue", "See Note [Values of copies].")
      .def(py::init<double, const StorageUses&, uint64_t, bool>(), py::arg("saved"),
           py::arg("uses"), py::arg("now"), py::arg("only") = false)
      .def_readonly("value", &CopyValue::value)
      .def("is_clearly_below", &CopyValue::is_clearly_below)
      .def("__lt__", &CopyValue::operator<);
  py::class_<LostDivision>(m, "LostDivision", "See Note [Divisions that lost].")
      .def(py::init<>())
      .def("is_due", &LostDivision::is_due, py::arg("us"), py::arg("divided_us"),
           py::arg("calls") = 1.0)
      .def("pay_off", &LostDivision::pay_off);
  m.def(
      "divide_again",
      [](std::vector<double> launch, std::vector<double> of_shards,
         std::vector<double> of_whole_calls, double us, LostDivision& lost) {
        const std::vector<double> none(launch.size(), 0.0);
        const PartTimes by_shards{none, launch, none, std::move(of_shards), none};
        const PartTimes by_whole_calls{none, launch, none, std::move(of_whole_calls),
                                       none};
        return divide_again(by_shards.parts(), by_whole_calls.parts(), launch.size(),
                            us, 1, &lost)
            .proportions;
      },
      py::arg("launch"), py::arg("of_shards"), py::arg("of_whole_calls"), py::arg("us"),
      py::arg("lost"));
  m.def("whole_us_of", &whole_us_of, py::arg("shard_us"), py::arg("setup_us"),
        py::arg("proportion"),
        "The time of the whole op without what it begins with, by that of a shard.");
  py::class_<Boundary>(m, "Boundary", "See Note [Steady boundaries].")
      .def(py::init<>());
  m.def("units_for", &units_for, py::arg("proportions"), py::arg("units"));
  m.def(
      "divide_call",
      [](std::vector<double> queue, std::vector<double> launch,
         std::vector<double> copies, std::vector<double> whole, double alone_us,
         bool in_shards, CopyRegret& regret, Boundary& boundary,
         std::vector<double> sums) {
        if (sums.empty()) sums.resize(whole.size());
        const PartTimes times{std::move(queue), std::move(launch), std::move(copies),
                              std::move(whole), std::move(sums)};
        return divide_call(times.parts(), times.whole.size(), alone_us, in_shards, 1,
                           &regret, &boundary)
            .proportions;
      },
      py::arg("queue"), py::arg("launch"), py::arg("copies"), py::arg("whole"),
      py::arg("alone_us"), py::arg("in_shards"), py::arg("regret"), py::arg("boundary"),
      py::arg("sums") = std::vector<double>());
}

}  // namespace xpurt
