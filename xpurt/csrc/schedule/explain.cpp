#include "schedule/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/device.h"
#include "host/mutex.h"
#include "op/op_record.h"
#include "schedule/decision.h"
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

std::string reason(const OpRecord& record, const RowRun& run, const Ordinal& devices) {
  const Decision* decision = run.decision;
  if (devices.devices.size() == 1) return "the only device";
  if (decision == nullptr) {
    const bool has_row = record.row.load(std::memory_order_acquire) != nullptr;
    return has_row ? "small, or its kernel does not take these operands"
                   : "has no kernel but PyTorch's";
  }
  if (!run.fractions.empty()) {
    std::string text = "together sooner than any one alone:";
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
  const auto possible =
      std::ranges::count_if(decision->candidates, &Candidate::is_possible);
  if (possible == 1) return "the only device that may run it";
  return is_deterministic() ? "planned: the least cost with all queues free"
                            : "predicted to finish first";
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

void explain_op(const OpRecord& record, Tier tier, const RowRun& run) {
  const Ordinal& devices = ordinal(-1);
  const auto* ran_on = find_physical_device(run.device_id);
  ExplainedOp made{record.name,
                   ran_on != nullptr ? ran_on->name : "?",
                   tier,
                   reason(record, run, devices),
                   {}};
  if (const Decision* decision = run.decision) {
    for (size_t candidate = 0; candidate < decision->candidates.size(); ++candidate) {
      const Candidate& each = decision->candidates[candidate];
      const bool native = candidate == devices.devices.size();
      const auto& device = native ? devices.home_device() : *devices.devices[candidate];
      made.candidates.push_back({device.name, native, each.free_us - decision->now_us,
                                 each.moves_us, each.cost_us,
                                 each.finish_us() - decision->now_us});
    }
  }
  std::lock_guard<Mutex> lock(mutex());
  if (calls_are_explained) kept().push_back(std::move(made));
}

}  // namespace xpurt
