// XPU graphs: PyTorch's graph interface over SYCL's command graphs.
#pragma once

#include <ATen/core/GraphImplInterface.h>

#include <memory>
#include <optional>
#include <vector>

#include "memory/allocator.h"
#include "random/captured_draws.h"
#include "stream/stream.h"

namespace xpurt {

using CommandGraph = sycl::ext::oneapi::experimental::command_graph<
    sycl::ext::oneapi::experimental::graph_state::modifiable>;
using ExecutableGraph = sycl::ext::oneapi::experimental::command_graph<
    sycl::ext::oneapi::experimental::graph_state::executable>;

// Throws NotImplementedError unless xpu:index can record graphs: it has one device,
// with SYCL's aspect for graphs.
void check_records_graphs(c10::DeviceIndex index);

// One capture and its replays. See Note [Capture].
class Graph final : public at::GraphImplInterface {
 public:
  // Checks the current device: see check_records_graphs().
  explicit Graph(const at::GraphImplArgs& args = {});
  ~Graph() override;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // From now on work of the current stream is recorded. Waits for the stream first.
  // {0, 0} requests a pool of the graph's own.
  void capture_begin(
      c10::MempoolId_t pool = {0, 0},
      at::GraphCaptureMode mode = at::GraphCaptureMode::Default) override;
  // Does not throw for an invalidated capture, as it may be called while the error that
  // invalidated it propagates. instantiate() and replay() throw.
  void capture_end() override;
  void instantiate() override;
  // Exists for compatibility with CUDAGraph. Every generator that draws in a capture
  // advances with each replay anyway. This checks that the generator is one of xpu, and
  // that nothing is being captured.
  void register_generator_state(const at::Generator& generator) const;
  // Submits the recorded work to the current stream of the graph's device.
  void replay() override;
  // Waits for the last replay, and releases the recorded work and the pool.
  void reset() override;
  c10::MempoolId_t pool() const override;
  void enable_debug_mode() override;
  // Writes the graph in the DOT language.
  void debug_dump(const std::string& path) override;

  CommandGraph& raw_graph();
  ExecutableGraph& raw_executable();

 private:
  void check_captured(const char* what) const;
  void stop_recording();

  const bool keep_graph_;
  bool captured_ = false;       // capture_end() was called
  std::string invalidated_by_;  // the reason of a refusal in the capture, or ""
  Stream* stream_ = nullptr;    // that is or was captured
  uint64_t epoch_ = 0;          // of the stream's placement
  std::unique_ptr<CommandGraph> recorded_;
  std::unique_ptr<ExecutableGraph> executable_;
  std::unique_ptr<CapturePool> pool_;
  std::optional<sycl::event> last_;  // the last replay
  CapturedDraws draws_;
  std::vector<c10::Storage> kept_;  // pinned memory that the recorded work uses
};

}  // namespace xpurt
