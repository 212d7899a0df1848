#include "schedule/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/device.h"
#include "host/mutex.h"
#include "memory/replica/device_override.h"
#include "op/op_record.h"
#include "schedule/best_alone.h"
#include "schedule/decision.h"
#include "schedule/learning_mode.h"
#include "schedule/row_run.h"

namespace xpurt {

std::atomic<bool> calls_are_explained{false};

namespace {

Mutex& mutex() {
  static auto* const leaked = new Mutex(Rank::explanations);
  return *leaked;
}
std::vector<ExplainedOp>& kept() {
  static auto* const leaked = new std::vector<ExplainedOp>;
  return *leaked;
}

size_t explainers = 0;  // begun and not ended; guarded by the mutex, as kept() is

// What a device without room for the operands means for the choice; "" if there is
// none.
std::string about_room(const Decision& decision, const Ordinal& devices) {
  if (decision.copies_to_stay) {
    return "its operands are copied there to stay: calls without them have lost as "
           "much time as that takes";
  }
  const Candidate& chosen = decision.candidates[candidate_of(decision, devices)];
  if (chosen.streams_us > 0) {
    return "predicted to finish first, though it has no room for the operands, which "
           "are copied for each call";
  }
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const Candidate& other = decision.candidates[position];
    if (other.streams_us > 0 && other.cost_us < chosen.cost_us) {
      return "predicted to finish first, since " + devices.devices[position]->name +
             " has no room for the operands";
    }
  }
  return "";
}

std::string reason(const OpRecord& record, Tier tier, const RowRun& run,
                   const Ordinal& devices) {
  const Decision* decision = run.decision;
  if (decision == nullptr) {
    if (is_on_shard()) return "a part of another op";
    const KernelPolicy policy = kernel_policy();
    if (policy == KernelPolicy::native) return "the kernel policy is native";
    if (record.row.load(std::memory_order_acquire) == nullptr) {
      return "has no kernel but PyTorch's";
    }
    if (tier == Tier::native || tier == Tier::copy) {
      return "small, or its kernel does not take these operands";
    }
    return policy == KernelPolicy::sycl ? "the kernel policy is sycl"
                                        : "only its kernel can run it";
  }
  if (!run.fractions.empty()) {
    std::string text = decision->explores ? "a trial of several devices together:"
                                          : "together sooner than any one alone:";
    for (size_t at = 0; at < run.fractions.size(); ++at) {
      if (run.fractions[at] <= 0) continue;
      const auto percent = std::lround(100 * run.fractions[at]);
      text += ' ' + std::to_string(percent) + "% " + devices.devices[at]->name + ',';
    }
    text.pop_back();
    return text;
  }
  if (devices.devices[decision->position]->id != run.device_id) {
    return "the device that was chosen could not run it";
  }
  if (decision->explores) return "a trial, to learn what it costs there";
  const Candidate& native = decision->candidates.back();
  if (decision->path_us > 0 && !decision->native &&
      decision->position == devices.home && native.is_possible() &&
      native.cost_us <= decision->candidates[devices.home].cost_us) {
    return "PyTorch's kernel would block the host, which has work for other devices";
  }
  if (held_alone(devices) == decision->position) {
    return "the program is faster on this device alone, as was measured";
  }
  const auto possible =
      std::ranges::count_if(decision->candidates, &Candidate::is_possible);
  if (possible == 1) {
    return std::ranges::any_of(decision->candidates, &Candidate::held_back)
               ? "the others are not worth a trial yet"
               : "the only device that may run it";
  }
  if (std::string text = about_room(*decision, devices); !text.empty()) return text;
  switch (learning_mode()) {
    case LearningMode::planned:
      return "planned: the least cost with all queues free";
    case LearningMode::table:
      return "predicted to finish first, by costs alone";
    default:
      return "predicted to finish first";
  }
}

void add_candidates(const Decision& decision, const Ordinal& devices,
                    ExplainedOp* made) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  for (size_t i = 0; i < decision.candidates.size(); ++i) {
    const Candidate& each = decision.candidates[i];
    const CandidateStatistics& known = decision.bucket->candidates[i];
    const double timed_us = known.factor.is_known()
                                ? known.factor.estimate(1) * decision.expected_us[i]
                                : 0;
    made->candidates.push_back({devices.devices[position_of(i, devices)]->name,
                                i == devices.devices.size(),
                                each.free_us - decision.now_us, each.moves_us,
                                each.cost_us, each.finish_us() - decision.now_us,
                                each.held_back, known.factor.count(), timed_us});
  }
}

}  // namespace

size_t begin_explaining() {
  std::lock_guard<Mutex> lock(mutex());
  ++explainers;
  calls_are_explained = true;
  return kept().size();
}

std::vector<ExplainedOp> end_explaining(size_t begin) {
  std::lock_guard<Mutex> lock(mutex());
  TORCH_CHECK(explainers > 0 && begin <= kept().size(),
              "end_explaining() without its begin_explaining()");
  if (--explainers == 0) {
    calls_are_explained = false;
    std::vector<ExplainedOp> all = std::exchange(kept(), {});
    all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(begin));
    return all;
  }
  return {kept().begin() + static_cast<ptrdiff_t>(begin), kept().end()};
}

void explain_op(const OpRecord& record, Tier tier, const RowRun& run,
                double measured_us) {
  const Ordinal& devices = ordinal(-1);
  const auto* ran_on = find_physical_device(run.device_id);
  ExplainedOp made{record.name, ran_on != nullptr ? ran_on->name : "?",
                   tier,        reason(record, tier, run, devices),
                   measured_us, {}};
  if (const Decision* decision = run.decision)
    add_candidates(*decision, devices, &made);
  std::lock_guard<Mutex> lock(mutex());
  if (calls_are_explained) kept().push_back(std::move(made));
}

void explain_other(std::string name, std::string device, Tier tier, std::string why,
                   double measured_us) {
  std::lock_guard<Mutex> lock(mutex());
  if (!calls_are_explained) return;
  kept().push_back(
      {std::move(name), std::move(device), tier, std::move(why), measured_us, {}});
}

}  // namespace xpurt
