#include "lazy/graph_runs.h"

#include <algorithm>

#include "host/mutex.h"
#include "lazy/metrics.h"

namespace xpurt {
namespace {

struct GraphsThatRan {
  Mutex mutex{Rank::lazy_graphs};
  std::vector<GraphRuns*> all;
  int numbers = 0;
};

GraphsThatRan& graphs_that_ran() {
  static auto* const leaked = new GraphsThatRan;
  return *leaked;
}

}  // namespace

void GraphRuns::begin(c10::Device device) {
  if (number_ != 0) return;
  const std::lock_guard<Mutex> lock(graphs_that_ran().mutex);
  if (number_ != 0) return;
  device_ = device;
  graphs_that_ran().all.push_back(this);
  number_ = ++graphs_that_ran().numbers;
}

GraphRuns::~GraphRuns() {
  if (number_ == 0) return;
  const std::lock_guard<Mutex> lock(graphs_that_ran().mutex);
  std::erase(graphs_that_ran().all, this);
}

std::string GraphRuns::name() const {
  const int number = number_;
  const std::string shown = number == 0 ? "" : std::to_string(number) + " ";
  return "lazy graph " + shown + "of " + std::to_string(ops_) + " ops";
}

void GraphRuns::count(GraphForm form, uint64_t ns) {
  Count& count = counts_[static_cast<size_t>(form)];
  count.calls.fetch_add(1, std::memory_order_relaxed);
  count.ns.fetch_add(ns, std::memory_order_relaxed);
}

void GraphRuns::append_rows(std::vector<GraphRunsRow>& rows) const {
  for (size_t form = 0; form < kGraphForms; ++form) {
    const uint64_t calls = counts_[form].calls;
    if (calls == 0) continue;
    rows.push_back({name(), kGraphFormNames[form], device_.str(), calls,
                    static_cast<double>(counts_[form].ns) * 1e-9});
  }
}

void GraphRuns::reset() {
  for (Count& each : counts_) {
    each.calls = 0;
    each.ns = 0;
  }
}

CountedRun::CountedRun(GraphRuns& runs, GraphForm form)
    : runs_(runs), form_(form), start_(std::chrono::steady_clock::now()) {
  if (named_.isActive())
    named_.before(runs.name() + ", " + kGraphFormNames[static_cast<size_t>(form)]);
}

CountedRun::~CountedRun() {
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::steady_clock::now() - start_);
  runs_.count(form_, took.count());
  count_run(took, form_ == GraphForm::compiled);
}

void for_each_lazy_graph(const std::function<void(GraphRuns&)>& visit) {
  const std::lock_guard<Mutex> lock(graphs_that_ran().mutex);
  for (GraphRuns* each : graphs_that_ran().all) visit(*each);
}

std::vector<GraphRunsRow> lazy_graph_runs() {
  std::vector<GraphRunsRow> rows;
  for_each_lazy_graph([&](const GraphRuns& each) { each.append_rows(rows); });
  return rows;
}

void reset_lazy_graph_runs() {
  for_each_lazy_graph([](GraphRuns& each) { each.reset(); });
}

}  // namespace xpurt
