// How often each lazy graph ran, in which form, and how long.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace xpurt {

class LazyGraph;

enum class GraphForm : uint8_t { op_by_op, compiled };
constexpr size_t kGraphForms = 2;
constexpr std::array<const char*, kGraphForms> kGraphFormNames{"op by op", "compiled"};

struct GraphRunsRow {
  std::string graph;
  const char* form;
  std::string device;
  uint64_t calls;
  double seconds;  // of the host
};

// The counts of one graph. It gets its number when it first runs, and is in the report
// from then on.
class GraphRuns {
 public:
  // `graph` owns it.
  GraphRuns(const LazyGraph& graph, size_t ops) : graph_(graph), ops_(ops) {}
  ~GraphRuns();
  GraphRuns(const GraphRuns&) = delete;
  GraphRuns& operator=(const GraphRuns&) = delete;

  // Before the first run, on the device. More calls do nothing.
  void begin(c10::Device device);

  // "lazy graph 3 of 71 ops"; without the number before `begin`.
  std::string name() const;
  const LazyGraph& graph() const { return graph_; }
  size_t ops() const { return ops_; }

  void count(GraphForm form, uint64_t ns);
  void append_rows(std::vector<GraphRunsRow>& rows) const;
  void reset();

 private:
  struct Count {
    std::atomic<uint64_t> calls{0}, ns{0};
  };
  const LazyGraph& graph_;
  const size_t ops_;
  std::atomic<int> number_{0};
  c10::Device device_{c10::DeviceType::XPU};  // written once, before number_
  std::array<Count, kGraphForms> counts_;
};

// Counts a run while it lives, and is its name in PyTorch's profiler.
class CountedRun {
 public:
  CountedRun(GraphRuns& runs, GraphForm form);
  ~CountedRun();
  CountedRun(const CountedRun&) = delete;
  CountedRun& operator=(const CountedRun&) = delete;

 private:
  GraphRuns& runs_;
  const GraphForm form_;
  const std::chrono::steady_clock::time_point start_;
  at::RecordFunction named_{at::RecordScope::USER_SCOPE};
};

// Visits the graphs that ran and are still there, under a lock.
void for_each_lazy_graph(const std::function<void(GraphRuns&)>& visit);

std::vector<GraphRunsRow> lazy_graph_runs();
void reset_lazy_graph_runs();

}  // namespace xpurt
