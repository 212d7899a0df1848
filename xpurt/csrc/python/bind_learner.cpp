// Whether the program learns, and the learner for tests.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <tuple>
#include <utility>

#include "python/bind.h"
#include "schedule/exploration.h"
#include "schedule/learning_mode.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// The calls of one bucket, chosen and learned from as decide() does it on one device,
// without a device.
class Learner {
 public:
  Learner(double native_us, double kernel_us, bool is_built)
      : expected_{kernel_us, native_us},
        sizes_(std::make_unique<StatisticsBySize>()),
        found_{*sizes_, 0} {
    sizes_->built = is_built ? 1 : 0;
    found_.bucket().candidates.resize(2);
    found_.bucket().in_use = 1;
  }

  // Whether the next call runs the kernel, whether it is timed, and how many calls
  // follow it in the same way.
  std::tuple<bool, bool, uint32_t> next(double build_us) {
    StatisticsBucket& bucket = found_.bucket();
    const Exploration exploration(found_, build_us, 1 + std::exchange(reused_, 0));
    Candidates candidates;
    for (size_t i = 0; i < 2; ++i) {
      candidates.emplace_back().cost_us =
          expected_[i] * learned_factor(found_, i, 1 - i);
    }
    exploration.hold_back_unproven(&candidates, 0);
    const size_t best = exploration.choose_at_home(candidates, 0);
    const size_t chosen = exploration.trial(candidates, best);
    const CandidateStatistics& known = bucket.candidates[chosen];
    const double us = candidates[chosen].cost_us;
    const bool timed =
        chosen != best || is_sample_due(bucket, known.factor, us, known.stall_us);
    if (!timed) reused_ = sampling_interval(known.factor.count(), us, known.stall_us);
    return {chosen == 0, timed, reused_};
  }

  void record(bool kernel, double us, double stall_us) {
    const size_t candidate = kernel ? 0 : 1;
    record_sample(found_, candidate, us / expected_[candidate], stall_us);
  }

  bool kernel() const { return found_.bucket().in_use == 0; }

 private:
  std::array<double, 2> expected_;
  std::unique_ptr<StatisticsBySize> sizes_;
  FoundBucket found_;
  uint32_t reused_ = 0;
};

}  // namespace

void bind_learner(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def(
      "learns", [] { return learning_mode() == LearningMode::learns; },
      "Whether times of the running program influence the choices.");
  py::class_<Learner>(testing, "Learner", "For tests: see Note [Exploration].")
      .def(py::init<double, double, bool>(), py::arg("native_us"), py::arg("kernel_us"),
           py::arg("is_built") = false)
      .def("next", &Learner::next, py::arg("build_us"),
           "(runs the kernel, is timed, calls that follow in the same way)")
      .def("record", &Learner::record, py::arg("kernel"), py::arg("us"),
           py::arg("stall_us"))
      .def_property_readonly("kernel", &Learner::kernel);
}

}  // namespace xpurt
